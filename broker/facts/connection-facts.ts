/** What calls know of a connection. */
import type { FactsRow } from '../store/facts-columns.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';

/** The connection that a grant leads to. */
export type ConnectionFacts = {
  id: string;
  label: string;
  status: 'active' | 'reauth_needed';
  credential: Uint8Array | null;
  /** What the upstream granted; null when it does not say. */
  upstreamScopes: readonly string[] | null;
  /** How long an answer may be silent; null: as long as its platform says, or any may. */
  idleMs: number | null;
  /** With a person's tokens: the row that holds them, of which the credential, its status and scopes are then. */
  personTokens?: string;
  /** The person gave other tokens since then, which an owner has to confirm before they take the place of these. */
  awaitsOwner?: true;
};

/** As far as it shows what a connection can be used for, without opening its credential. */
export type Usability = Pick<ConnectionFacts, 'status' | 'credential' | 'upstreamScopes'>;

/** The connection of a row: the one that its grant names, or the platform's default one. */
export function connectionOf(row: FactsRow): ConnectionFacts | undefined {
  if (row.connection_id === null || row.connection_status === null) return undefined;
  return {
    id: row.connection_id,
    label: row.connection_label ?? '',
    status: row.connection_status,
    credential: row.connection_credential,
    upstreamScopes: readUpstreamScopes(row.connection_upstream_scopes),
    idleMs: row.connection_idle_ms,
  };
}

/** What a stored connection can be used for. */
export function usabilityOf({ status, credential, upstream_scopes }: ConnectionTable): Usability {
  return { status, credential, upstreamScopes: readUpstreamScopes(upstream_scopes) };
}

const readUpstreamScopes = (stored: string | null): readonly string[] | null =>
  stored === null ? null : readStored(Texts, stored, 'scopes of a connection');
