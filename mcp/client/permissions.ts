/** Effective permissions of the agent (specification, Effective permissions). */

/** Permissions with one connection, or without naming one. */
export type Granted = {
  /** Usable scopes. */
  scopes: string[];
  /** Whether the grant requires approval for every call. */
  requireApproval: boolean;
  /** Scopes whose calls require approval. */
  approvalScopes?: string[];
  /** Scopes with rules that depend on the call, which may still be held or refused. */
  conditionalScopes?: string[];
  unenforcedScopes?: string[];
  constraints?: Record<string, unknown>;
  expiresInSeconds?: number;
};

/** `scopes`, `requireApproval` and `constraints` apply to a call without `connection_id`; the other lists cover all connections. */
export type PlatformPermissions = Granted & {
  platformId: string;
  platformName: string;
  connections?: (Granted & {
    connection_id: string;
    label: string | null;
    /**
     * `reauth_needed`: the platform refused the stored credential. `not_connected`: there is no credential. `per_person`: each person
     * gives a token for the connection, so calls name a caller.
     */
    status: 'active' | 'reauth_needed' | 'not_connected' | 'per_person';
    /** Used by calls without `connection_id`. */
    default: boolean;
  })[];
  /** `graphql`: calls are POSTs to `/`. */
  callStyle?: string;
  /** The base URL in front of every endpoint; absent for MCP servers, and from older brokers. */
  baseUrl?: string;
  /** Base URLs of single operations, such as that of uploads. */
  otherBaseUrls?: string[];
  /** The platform's format of an error: JSON, or XML as text, with the placeholders `{detail}`, `{code}` and `{status}`. */
  errorBody?: Record<string, unknown> | string;
  /** Set when the platform reports errors with status 200. */
  errorStatus?: 200;
  /** The server's host; MCP platforms only. */
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
