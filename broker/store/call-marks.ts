/** Past calls of agents that rules with a look-back condition need: the newest call of each kind. */
import type { Db } from './store.ts';
import type { CallMarkTable } from './tables/rules.ts';

type Place = Pick<CallMarkTable, 'organisation_id' | 'agent_id'>;

/** Returns the newest calls of these kinds, by kind. */
export async function findCallMarks(
  db: Db,
  { organisation_id, agent_id }: Place,
  kinds: readonly string[],
): Promise<Map<string, Pick<CallMarkTable, 'made_at' | 'audit_id'>>> {
  if (kinds.length === 0) return new Map();
  const rows = await db
    .selectFrom('call_marks')
    .select(['kind', 'made_at', 'audit_id'])
    .where('organisation_id', '=', organisation_id)
    .where('agent_id', '=', agent_id)
    .where('kind', 'in', kinds)
    .execute();
  return new Map(rows.map(({ kind, ...mark }) => [kind, mark]));
}

/** Records a call for each of these kinds, unless a newer one is stored. Ordered, so that concurrent transactions do not deadlock. */
export async function putCallMarks(tx: Db, rows: readonly CallMarkTable[]): Promise<void> {
  await tx
    .insertInto('call_marks')
    .values(rows.toSorted((a, b) => (a.kind < b.kind ? -1 : 1)))
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'agent_id', 'kind'])
        .doUpdateSet((eb) => ({ made_at: eb.ref('excluded.made_at'), audit_id: eb.ref('excluded.audit_id') }))
        .whereRef('excluded.made_at', '>', 'call_marks.made_at'),
    )
    .execute();
}

/** Deletes calls that were made before `before`. */
export async function purgeCallMarks(db: Db, before: number): Promise<void> {
  await db.deleteFrom('call_marks').where('made_at', '<', before).execute();
}
