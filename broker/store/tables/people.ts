/** Tables of the people for whom agents call. */
import type { Bit } from './column-types.ts';
import type { ConnectionTable } from './connections.ts';

/** The HMAC key for hashing the identities of an organisation's people. Sealed, and never replaced. */
export type PersonKeyTable = { organisation_id: string; id: string; hash_key: Uint8Array };

/** A person for whom agents call. `hash`: keyed hash of the identity; `id`: random, and the only identifier that leaves the broker. */
export type PersonTable = { organisation_id: string; id: string; hash: string; created_at: number };

/** Who identified a person, and for which agent; shown to owners and to the person. */
type IdentifiedBy = {
  /** A source, or the issuer of an assertion. */
  named_by: string;
  verified: Bit;
  /** The agent's uuid. */
  agent_id: string;
};

/** Tokens of a person for a connection; the token columns are the same as for a connection. */
export type PersonTokenTable = IdentifiedBy &
  Pick<
    ConnectionTable,
    | 'organisation_id'
    | 'id'
    | 'platform_id'
    | 'status'
    | 'credential'
    | 'upstream_scopes'
    | 'created_at'
    | 'refresh_token'
    | 'oauth'
    | 'token_id'
    | 'refresh_claim'
    | 'refresh_claim_until'
  > & {
    connection_id: string;
    person_id: string;
    /**
     * `obtained`: the person has not accepted them yet. `unconfirmed`: an owner has to confirm them. Only `kept` tokens are used; a person has at
     * most one such row per connection.
     */
    standing: 'obtained' | 'unconfirmed' | 'kept';
    consent_id: string;
    /** SHA-256 of the cookie of the browser that obtained the tokens, to which they are bound until they are kept; null from then on. */
    browser_hash: string | null;
    /** Accurate to some minutes; null: never. */
    last_used_at: number | null;
  };

/** A browser session of a person. `consent_id`: the only consent that it shows; empty: all of the person's. */
export type PersonSessionTable = {
  cookie_hash: string;
  organisation_id: string;
  person_id: string;
  consent_id: string;
  expires_at: number;
};

/** A consent started for a person (specification, Per-person consent). */
export type PersonConsentTable = IdentifiedBy & {
  token_hash: string;
  organisation_id: string;
  id: string;
  /** The agent, or its parent. */
  family_id: string;
  platform_id: string;
  connection_id: string;
  person_id: string;
  status: 'pending' | 'completed';
  /** SHA-256 of the cookie of the browser that the consent is bound to. */
  browser_hash: string | null;
  state_hash: string | null;
  /** Sealed: the OAuth flow with this state. */
  flow: Uint8Array | null;
  created_at: number;
  expires_at: number;
};
