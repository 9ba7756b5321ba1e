/** Calls of agents that rules look back at: of each kind the newest that was noted. */
import type { Db } from './store.ts';
import type { CallMarkTable } from './tables/rules.ts';

type Place = Pick<CallMarkTable, 'organisation_id' | 'agent_id'>;

/** The newest calls of these kinds, by kind. */
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

/** Notes a call, of each of these kinds; a newer one that is noted already stays. In one order for all, so that no two transactions wait for each other. */
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

/** Forgets calls that were made before `before`. */
export async function purgeCallMarks(db: Db, before: number): Promise<void> {
  await db.deleteFrom('call_marks').where('made_at', '<', before).execute();
}
