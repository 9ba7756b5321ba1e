/** Actions that agents have done before, each once, as hashes. */

import type { Db } from './store.ts';
import type { AgentDeedTable } from './tables/approvals.ts';
import type { Bit } from './tables/column-types.ts';

type Place = Pick<AgentDeedTable, 'organisation_id' | 'agent_id'>;

/** Returns which of these hashes are stored for an agent, and whether the action changed something. */
export async function findSeenValues(
  db: Db,
  { organisation_id, agent_id }: Place,
  hashes: readonly string[],
): Promise<Map<string, Bit>> {
  const rows = await db
    .selectFrom('agent_deeds')
    .select(['hash', 'changed'])
    .where('organisation_id', '=', organisation_id)
    .where('agent_id', '=', agent_id)
    .where('hash', 'in', hashes)
    .execute();
  return new Map(rows.map(({ hash, changed }) => [hash, changed]));
}

/** Stores seen values, ordered by hash so that concurrent transactions do not deadlock. The mark for a change is never reset. */
export async function putSeenValues(tx: Db, rows: readonly AgentDeedTable[]): Promise<void> {
  await tx
    .insertInto('agent_deeds')
    .values(rows.toSorted((a, b) => (a.hash < b.hash ? -1 : 1)))
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'agent_id', 'hash'])
        .doUpdateSet({ changed: 1 })
        .whereRef('excluded.changed', '>', 'agent_deeds.changed'),
    )
    .execute();
}
