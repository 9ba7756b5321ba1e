/** State of the authorization server between requests, shared by all replicas. */

import type { ExpressionBuilder, Kysely } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { OAuthRecordTable } from './tables/installation.ts';

/** Inserts or updates a record. A consumed record stays consumed, and its source does not change. */
export async function putOAuthRecord(
  db: Db,
  record: Omit<OAuthRecordTable, 'used_at' | 'source'> & { source?: string | null },
): Promise<void> {
  const { payload, expires_at, authorisation_id, source = null } = record;
  await db
    .insertInto('oauth_records')
    .values({ ...record, source, used_at: null })
    .onConflict((c) => c.columns(['kind', 'id']).doUpdateSet({ payload, expires_at, authorisation_id }))
    .execute();
}

/** Inserts a record unless it exists. Returns true to exactly one caller. */
export async function addOAuthRecord(db: Db, record: Omit<OAuthRecordTable, 'used_at' | 'source'>): Promise<boolean> {
  const added = await db
    .insertInto('oauth_records')
    .values({ ...record, source: null, used_at: null })
    .onConflict((c) => c.columns(['kind', 'id']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return added !== undefined;
}

/** The unexpired record with this id, consumed or not; or undefined. */
export async function findOAuthRecord(
  db: Db,
  kind: string,
  id: string,
  now: number,
): Promise<OAuthRecordTable | undefined> {
  return await db
    .selectFrom('oauth_records')
    .selectAll()
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .executeTakeFirst();
}

/**
 * Consumes a record. Returns true to exactly one caller; with `leewayMs`, also to callers within that time after the first. Without it times
 * are not compared, so that a caller with a `now` older than the first one's does not pass.
 */
export async function useOAuthRecord(
  db: Db,
  { kind, id }: Pick<OAuthRecordTable, 'kind' | 'id'>,
  { now, leewayMs = 0 }: { now: number; leewayMs?: number },
): Promise<boolean> {
  const used = await db
    .updateTable('oauth_records')
    .set((eb) => ({ used_at: eb.fn.coalesce('used_at', eb.val(now)) }))
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where((eb) => {
      const unused = eb('used_at', 'is', null);
      return leewayMs > 0 ? eb.or([unused, eb('used_at', '>', now - leewayMs)]) : unused;
    })
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

/** Deletes one record. */
export async function removeOAuthRecord(db: Db, kind: string, id: string): Promise<void> {
  await db.deleteFrom('oauth_records').where('kind', '=', kind).where('id', '=', id).execute();
}

/** Deletes the records of a kind of an authorisation. */
export async function removeOAuthRecordsOf(db: Db, kind: string, authorisationId: string): Promise<void> {
  await db
    .deleteFrom('oauth_records')
    .where('kind', '=', kind)
    .where('authorisation_id', '=', authorisationId)
    .execute();
}

/** Removes the expiry of a record, so that it is kept. */
export async function keepOAuthRecord(db: Db, kind: string, id: string): Promise<void> {
  await db
    .updateTable('oauth_records')
    .set({ expires_at: null })
    .where('kind', '=', kind)
    .where('id', '=', id)
    .execute();
}

/** Of the records of a kind that have an expiry, deletes the oldest until `most` are left. */
export async function capOAuthRecords(db: Db, kind: string, most: number): Promise<void> {
  await db
    .deleteFrom('oauth_records')
    .where('kind', '=', kind)
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('oauth_records')
        .select('id')
        .where('kind', '=', kind)
        .where('expires_at', 'is not', null)
        .orderBy('expires_at', 'desc')
        .orderBy('id')
        .limit(1_000)
        .offset(most),
    )
    .execute();
}

/**
 * Evicts clients without an authorisation until `most` are left: the oldest ones of the network that registered the most, so
 * that a flood evicts its own clients.
 */
export async function capUnusedClients(db: Db, most: number): Promise<void> {
  const unused = db.selectFrom('oauth_records').where('kind', '=', 'Client').where('expires_at', 'is not', null);
  for (;;) {
    const sources = await unused
      .select((eb) => ['source', eb.fn.countAll().as('count')])
      .groupBy('source')
      .orderBy('count', 'desc')
      .orderBy('source')
      .execute();
    const excess = sources.reduce((sum, { count }) => sum + Number(count), 0) - most;
    const [largest, next] = sources;
    if (excess <= 0 || !largest) return;
    // Evicts at least one, and at most as many as bring it down to the second largest network.
    const share = Math.min(excess, Math.max(1, Number(largest.count) - Number(next?.count ?? 0)));
    const oldest = unused
      .select('id')
      .where('source', largest.source === null ? 'is' : '=', largest.source)
      .orderBy('expires_at')
      .orderBy('id')
      .limit(share);
    await db
      .deleteFrom('oauth_records')
      .where('kind', '=', 'Client')
      // Repeated, because an owner who authorises a client meanwhile has locked its row: the list was read before that.
      .where('expires_at', 'is not', null)
      .where('id', 'in', oldest)
      .execute();
  }
}

/** Deletes records that expired before `before`. */
export async function purgeOAuthRecords(db: Db, before: number): Promise<void> {
  await db.deleteFrom('oauth_records').where('expires_at', '<', before).execute();
}

/** Lets a person reconnect after an owner ended the authorisation: a client registers again only when the token endpoint does not know it. */
const IDLE_MS = 24 * 3_600_000;

/** Deletes clients that were kept for authorisations, a day after the last of these ended. */
export async function purgeIdleClients(db: Kysely<Schema>, now: number): Promise<void> {
  const isIdle = (eb: ExpressionBuilder<Schema, 'oauth_records'>) =>
    eb.and([
      eb('kind', '=', 'Client'),
      eb('expires_at', 'is', null),
      eb.not(
        eb.exists(
          eb
            .selectFrom('mcp_authorisations as m')
            .select('m.id')
            .whereRef('m.client_id', '=', 'oauth_records.id')
            .where((m) => m(m.fn.coalesce('m.ended_at', 'm.expires_at'), '>', now - IDLE_MS)),
        ),
      ),
    ]);
  await db.transaction().execute(async (tx) => {
    // Locked first, so that the next statement sees authorisations that are being made meanwhile: they lock the client, too.
    await tx
      .updateTable('oauth_records')
      .set((eb) => ({ expires_at: eb.ref('expires_at') }))
      .where(isIdle)
      .execute();
    await tx.deleteFrom('oauth_records').where(isIdle).execute();
  });
}
