/** Tables of the people for whom agents call. */
import type { Bit } from './column-types.ts';
import type { ConnectionTable } from './connections.ts';

/** The HMAC key with which an organisation's people are hashed. Sealed, and never replaced. */
export type PersonKeyTable = { organisation_id: string; id: string; hash_key: Uint8Array };

/** A person for whom agents call. `hash`: of who it is; `id`: random, and the only name that leaves the broker. */
export type PersonTable = { organisation_id: string; id: string; hash: string; created_at: number };

/** Who identified a person, and for which agent, as owners and the person see it. */
type IdentifiedBy = {
  /** A source, or the issuer of an assertion. */
  named_by: string;
  verified: Bit;
  /** The agent's uuid. */
  agent_id: string;
};

/** Tokens that a person gave for a connection; the token columns as those of a connection. */
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
     * `obtained`: the person has not said yet that it is to be kept. `unconfirmed`: an owner has to confirm it. Only what is `kept`
     * is used; of a person and a connection there is one.
     */
    standing: 'obtained' | 'unconfirmed' | 'kept';
    consent_id: string;
    /** SHA-256 of the cookie of the browser that obtained them, whose they are until they are kept; null from then on. */
    browser_hash: string | null;
    /** To within some minutes; null: never. */
    last_used_at: number | null;
  };

/** A browser in which a person is known for a while. `consent_id`: what is shown; empty: all that the person gave. */
export type PersonSessionTable = {
  cookie_hash: string;
  organisation_id: string;
  person_id: string;
  consent_id: string;
  expires_at: number;
};

/** A person's consent that was begun (specification, Per-person consent). */
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
  /** SHA-256 of the cookie of the browser that goes through it. */
  browser_hash: string | null;
  state_hash: string | null;
  /** Sealed: the flow that `state_hash` belongs to. */
  flow: Uint8Array | null;
  created_at: number;
  expires_at: number;
};
