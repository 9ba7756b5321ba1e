/** Counters of what agents used of the limits of rules. */
import type { Db } from './store.ts';
import type { LimitCountTable } from './tables/rules.ts';

export type LimitPlace = Omit<LimitCountTable, 'used'>;

/** Returns the used amounts of these counters of one organisation, in their order; 0 for an unused one. */
export async function findLimitCounts(db: Db, places: readonly LimitPlace[]): Promise<number[]> {
  const [first] = places;
  if (!first) return [];
  const found = await db
    .selectFrom('limit_counts')
    .selectAll()
    .where('organisation_id', '=', first.organisation_id)
    .where((eb) =>
      eb.or(
        places.map(({ rule, agent_id, period_start }) =>
          eb.and([eb('rule', '=', rule), eb('agent_id', '=', agent_id), eb('period_start', '=', period_start)]),
        ),
      ),
    )
    .execute();
  return places.map((place) => found.find((row) => isAt(row, place))?.used ?? 0);
}

const isAt = (row: LimitPlace, place: LimitPlace): boolean =>
  row.rule === place.rule && row.agent_id === place.agent_id && row.period_start === place.period_start;

/** Adds to a counter in one guarded statement, up to `most` if given. Returns the new amount; undefined: it would exceed `most`. */
export async function addToLimit(
  db: Db,
  place: LimitPlace,
  amount: number,
  most: number | undefined,
): Promise<number | undefined> {
  const added = await db
    .insertInto('limit_counts')
    .values({ ...place, used: amount })
    .onConflict((c) => {
      const update = c
        .columns(['organisation_id', 'rule', 'agent_id', 'period_start'])
        .doUpdateSet((eb) => ({ used: eb('limit_counts.used', '+', eb.ref('excluded.used')) }));
      return most === undefined
        ? update
        : update.where((eb) => eb(eb('limit_counts.used', '+', eb.ref('excluded.used')), '<=', most));
    })
    .returning('used')
    .executeTakeFirst();
  return added?.used;
}

/** Deletes counters of periods that began before `before`. */
export async function purgeLimitCounts(db: Db, before: number): Promise<void> {
  await db.deleteFrom('limit_counts').where('period_start', '<', before).execute();
}
