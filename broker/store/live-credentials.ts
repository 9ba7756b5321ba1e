/** Checks which credentials of calls in flight (used by the client, or towards the platform) are still valid. */
import type { LentCredential } from '../policy/access-ended.ts';
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';

type Kind = LentCredential['kind'];
type Find = (db: Db, ids: readonly string[], now: Instant) => Promise<{ id: string }[]>;

const FIND: Readonly<Record<Kind, Find>> = {
  static_key: (db, ids, now) => live(db, 'static_keys', ids, now),
  workload: (db, ids) => db.selectFrom('workloads').select('id').where('id', 'in', ids).execute(),
  mcp_authorisation: (db, ids, now) => live(db, 'mcp_authorisations', ids, now),
  person_tokens: (db, ids) =>
    db.selectFrom('person_tokens').select('id').where('id', 'in', ids).where('standing', '=', 'kept').execute(),
};

const live = (db: Db, table: 'static_keys' | 'mcp_authorisations', ids: readonly string[], now: Instant) =>
  db
    .selectFrom(table)
    .select('id')
    .where('id', 'in', ids)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();

/** Returns the ids of credentials that are neither revoked nor expired. One statement per kind. */
export async function liveCredentials(
  db: Db,
  lent: readonly LentCredential[],
  now: Instant,
): Promise<ReadonlySet<string>> {
  const byKind = Map.groupBy(lent, ({ kind }) => kind);
  const found = await Promise.all(
    [...byKind].map(([kind, some]) => FIND[kind](db, [...new Set(some.map(({ id }) => id))], now)),
  );
  return new Set(found.flat().map(({ id }) => id));
}
