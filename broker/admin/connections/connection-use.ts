/** When governed calls last showed that a credential works, or does not. Read from audit rows, so that calls need not write it. */
import { shownFlags } from '../../audit/audit-flags.ts';
import type { Instant } from '../../policy/facts.ts';
import { listRecentRows, type RecentRow } from '../../store/connection-outcomes.ts';
import type { Db } from '../../store/store.ts';

/** `ok`: the platform accepted the credential. */
export type ConnectionUse = { at: Instant; ok: boolean; upstreamStatus: number | null };

/** Events after which a connection may have another credential, so that older calls do not count. */
const REPLACES = new Set([
  'governance_applied',
  'connection_secret_replaced',
  'connection_connected',
  'connection_disconnected',
]);

/**
 * Returns, by connection id, the last call that shows whether the credential works, among the newest audit rows. In an organisation with many calls
 * these cover only minutes; connections without a call in them are left out.
 */
export async function readUses(db: Db, organisationId: string): Promise<ReadonlyMap<string, ConnectionUse>> {
  const uses = new Map<string, ConnectionUse>();
  const settled = new Set<string>();
  for (const row of await listRecentRows(db, organisationId)) {
    if (row.reason === 'governance_applied') break;
    const id = row.connection_id;
    if (id === null || settled.has(id)) continue;
    const use = useIn(row);
    if (use) uses.set(id, use);
    if (use || REPLACES.has(row.reason)) settled.add(id);
  }
  return uses;
}

/** A 4xx other than 401 may be due to the call as well as to the credential. A call for a person used the person's token. */
function useIn(row: RecentRow): ConnectionUse | undefined {
  const { kind, created_at, reason, result, upstream_status } = row;
  if (kind !== 'action' || shownFlags(row).caller) return undefined;
  if (reason === 'upstream_auth_failed' || (reason === 'platform_reauth_needed' && result === 'errored'))
    return { at: created_at, ok: false, upstreamStatus: upstream_status };
  if (upstream_status === null || result !== 'allowed') return undefined;
  if (upstream_status === 401) return { at: created_at, ok: false, upstreamStatus: upstream_status };
  const isTaken = (upstream_status >= 200 && upstream_status < 300) || upstream_status === 304;
  return isTaken ? { at: created_at, ok: true, upstreamStatus: upstream_status } : undefined;
}
