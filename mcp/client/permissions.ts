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

/** `scopes`, `requireApproval` and `constraints` are of a call without `connection_id`; the other lists of all connections. */
export type PlatformPermissions = Granted & {
  platformId: string;
  platformName: string;
  connections?: (Granted & {
    connection_id: string;
    label: string | null;
    /**
     * `reauth_needed`: the platform refused the stored credential. `not_connected`: there is none. `per_person`: each person
     * gives a token for it, so calls name a caller.
     */
    status: 'active' | 'reauth_needed' | 'not_connected' | 'per_person';
    /** Used by calls without `connection_id`. */
    default: boolean;
  })[];
  /** `graphql`: calls are POSTs to `/`. */
  callStyle?: string;
  /** What stands before every endpoint, of platforms that are not MCP servers. Earlier brokers do not tell. */
  baseUrl?: string;
  /** How it writes an error: JSON, or XML as a text, in which `{detail}`, `{code}` and `{status}` stand for what is told. */
  errorBody?: Record<string, unknown> | string;
  /** It tells of errors with this status. */
  errorStatus?: 200;
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
