/** What the agent may do now (specification, Effective permissions). */

/** What is granted through one connection, or without naming one. */
export type Granted = {
  /** What can be used now. */
  scopes: string[];
  /** True: the grant holds every call for a person. */
  requireApproval: boolean;
  /** Scopes whose calls wait for a person. */
  approvalScopes?: string[];
  /** Scopes where a rule looks at the call itself: it may still be held or refused. */
  conditionalScopes?: string[];
  unenforcedScopes?: string[];
  constraints?: Record<string, unknown>;
  expiresInSeconds?: number;
};

/** `scopes`, `requireApproval` and `constraints` are of a call without `connection_id`; the other lists of all connections. */
export type PlatformPermissions = Granted & {
  platformId: string;
  platformName: string;
  connections?: (Granted & {
    connection_id: string;
    label: string | null;
    /** `reauth_needed`: the platform refused the stored credential. `not_connected`: there is none. */
    status: 'active' | 'reauth_needed' | 'not_connected';
    /** What a call without `connection_id` goes through. */
    default: boolean;
  })[];
  /** `graphql`: calls are POSTs to `/`. */
  callStyle?: string;
  /** Of MCP platforms. */
  serverHost?: string;
  serverName?: string;
};

export type Permissions = {
  agent: { id: string; name: string; agent_id?: string };
  platforms: PlatformPermissions[];
  /** Equal to the ETag. */
  version: string;
  egress?: Record<string, unknown>;
};
