/** What the agent may do now (specification, Effective permissions). */

export type PlatformPermissions = {
  platformId: string;
  platformName: string;
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
  connections?: {
    connection_id: string | null;
    label: string | null;
    scopes: string[];
    requireApproval: boolean;
    default: boolean;
  }[];
  expiresInSeconds?: number;
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
