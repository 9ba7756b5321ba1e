/** Tables of the broker itself, not of an organisation. */
import type { Bit } from './column-types.ts';

/** State of the authorization server for MCP clients, in the library's format, by kind. */
export type OAuthRecordTable = {
  kind: string;
  /** The id of a client or grant; for codes and tokens their SHA-256. */
  id: string;
  /** For codes and refresh tokens: their authorisation. */
  authorisation_id: string | null;
  /** JSON text, without the secret behind `id`. */
  payload: string;
  created_at: number;
  expires_at: number | null;
  used_at: number | null;
  /** For a client, the network that registered it (`siteOf`); for an interaction, SHA-256 of the cookie of its browser; otherwise null. */
  source: string | null;
};

/** Keys of the broker itself, not of an organisation. */
export type SigningKeyTable = {
  kid: string;
  use: 'evidence' | 'issuing' | 'root' | 'session';
  public_jwk: string;
  private_key: Uint8Array | null;
  created_at: number;
  activates_at: number;
  retired_at: number | null;
  /** Proof that the broker created the key (migration 0069); null: added by an earlier release. */
  authenticator: Uint8Array | null;
};

/** Metadata of the store: master key check values, sandbox port. */
export type MetaTable = { name: string; value: string };

/**
 * Running processes, to distinguish intents of dead processes from those of slow ones. `release`: null for an earlier release that does not
 * store it. `member`: whether it is a member of the run (store/instances.ts); 0 until a starting process has found out whether another one is alive.
 */
export type InstanceTable = { id: string; started_at: number; seen_at: number; member: Bit; release: string | null };

/** Leases: at most one process at a time does a piece of work; `fence` grows with each holder. */
export type LeaseTable = { name: string; holder: string | null; until: number; fence: number };
