/** The facts about a connection that calls need. */
import type { FactsRow } from '../store/facts-columns.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';

/** The connection that a grant uses. */
export type ConnectionFacts = {
  id: string;
  label: string;
  status: 'active' | 'reauth_needed';
  credential: Uint8Array | null;
  /** The scopes that the upstream granted; null when the upstream did not report them. */
  upstreamScopes: readonly string[] | null;
  /** How long an answer may pause; null: the platform's setting, or else the default, applies. */
  idleMs: number | null;
  /** With a person's tokens: the id of the row that holds them; credential, status and scopes are then those of the row. */
  personTokens?: string;
  /** The person has provided other tokens since, which an owner must confirm before they replace these. */
  awaitsOwner?: true;
};

/** The part that shows what a connection can be used for, without opening its credential. */
export type Usability = Pick<ConnectionFacts, 'status' | 'credential' | 'upstreamScopes'>;

/** Returns the connection of a row: the one that its grant names, or the platform's default. Undefined when there is none. */
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

/** Returns what a stored connection can be used for. */
export function usabilityOf({ status, credential, upstream_scopes }: ConnectionTable): Usability {
  return { status, credential, upstreamScopes: readUpstreamScopes(upstream_scopes) };
}

const readUpstreamScopes = (stored: string | null): readonly string[] | null =>
  stored === null ? null : readStored(Texts, stored, 'scopes of a connection');
