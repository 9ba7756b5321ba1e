/** Tables of connections and their tokens. */
import type { Bit } from './column-types.ts';

export type ConnectionTable = {
  organisation_id: string;
  id: string;
  platform_id: string;
  label: string;
  is_default: Bit;
  status: 'active' | 'reauth_needed';
  credential: Uint8Array | null;
  /** Where the secret comes from, as in governance.yaml: never the secret itself. */
  secret_reference: string | null;
  /** JSON: the OAuth scopes that the upstream granted; null when there are none, or the upstream does not report them. */
  upstream_scopes: string | null;
  revision: number;
  created_at: number;
  /** When the credential was last replaced by another one, not renewed; null: never, or before migration 0076. */
  credential_replaced_at: number | null;
  /** Sealed; null when there is none. */
  refresh_token: Uint8Array | null;
  /** JSON: an OAuthFacts; null when the credential is not from an OAuth server. */
  oauth: string | null;
  /** Version of the tokens: changes with each new pair. */
  token_id: string | null;
  /** The current refresh claim, and its expiry (lease). */
  refresh_claim: string | null;
  refresh_claim_until: number | null;
  /** Result of the last test, for the credential with this revision; all null: never tested. */
  tested_at: number | null;
  tested_revision: number | null;
  tested_ok: Bit | null;
  tested_status: number | null;
  tested_detail: string | null;
  /** Idle timeout of a streamed answer; null: the default. */
  idle_ms: number | null;
  /** How long a request of an unmodified client waits for a decision, unless it says otherwise; null: the default. */
  wait_ms: number | null;
  /** JSON: a FailingTokens; null: the last token was issued, or none was requested. Not of OAuth connections, whose failures are in `oauth`. */
  failing: string | null;
  /** 1: it has got no token for a while, or the server rejects the broker's client, of OAuth connections too. */
  attention: Bit;
};

export type TokenColumns =
  | 'refresh_token'
  | 'oauth'
  | 'token_id'
  | 'refresh_claim'
  | 'refresh_claim_until'
  | 'failing'
  | 'attention';

export type TestColumns = 'tested_at' | 'tested_revision' | 'tested_ok' | 'tested_status' | 'tested_detail';

export type TimeoutColumns = 'idle_ms' | 'wait_ms';

/** A new connection, without tokens and test results. */
export type NewConnection = Omit<
  ConnectionTable,
  TokenColumns | TestColumns | TimeoutColumns | 'credential_replaced_at'
> &
  Partial<Pick<ConnectionTable, TimeoutColumns | 'credential_replaced_at'>>;

/** An access token that the broker requests by itself (migration 0023). */
export type UpstreamTokenTable = {
  organisation_id: string;
  connection_id: string;
  purpose: string;
  id: string;
  /** Sealed; null while the first token is being requested. */
  token: Uint8Array | null;
  /** From when on the token is not used any more; null without a token. */
  refresh_at: number | null;
  expires_at: number;
  claim: string | null;
  claim_until: number | null;
};

/** A pending authorization code flow. */
export type OAuthFlowTable = {
  /** SHA-256 of `state`. */
  state_hash: string;
  organisation_id: string;
  id: string;
  connection_id: string;
  owner_id: string;
  /** The browser session that started it; null when started by API. */
  session_id: string | null;
  /** Sealed JSON. */
  flow: Uint8Array;
  created_at: number;
  expires_at: number;
};

/** Tokens that are deleted here, and still have to be revoked at the server that issued them. */
export type TokenRevocationTable = {
  organisation_id: string;
  id: string;
  /** Of a connection that may not exist any more. */
  connection_id: string;
  /** Whose tokens they were; null: the connection's own. */
  person_id: string | null;
  /** Sealed JSON. */
  request: Uint8Array;
  created_at: number;
  /** From when on the next attempt may begin. */
  next_at: number;
};
