/** What calls know of a connection. */
import type { FactsRow } from '../store/facts-columns.ts';
import { readStored, Texts } from '../store/stored-json.ts';

/** The connection that a grant leads to. */
export type ConnectionFacts = {
  id: string;
  label: string;
  status: 'active' | 'reauth_needed';
  credential: Uint8Array | null;
  /** What the upstream granted; null when it does not say. */
  upstreamScopes: readonly string[] | null;
  /** How long a streamed answer may be silent; null: as long as any. */
  idleMs: number | null;
  /** With a person's tokens: the row that holds them, of which the credential, its status and scopes are then. */
  personTokens?: string;
};

/** The connection of a row: the one that its grant names, or the platform's default one. */
export function connectionOf(row: FactsRow): ConnectionFacts | undefined {
  if (row.connection_id === null || row.connection_status === null) return undefined;
  return {
    id: row.connection_id,
    label: row.connection_label ?? '',
    status: row.connection_status,
    credential: row.connection_credential,
    upstreamScopes:
      row.connection_upstream_scopes === null
        ? null
        : readStored(Texts, row.connection_upstream_scopes, 'scopes of a connection'),
    idleMs: row.connection_idle_ms,
  };
}
