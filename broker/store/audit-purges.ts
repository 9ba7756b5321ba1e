/** Deletes audit rows whose retention has expired (migration 0047). */
import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import { PURGED, type RetainedKind } from '../policy/retention.ts';
import type { AuditRow } from './audit.ts';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { OrganisationTable } from './tables/organisations.ts';
import type { AuditPurgeTable } from './tables/receipt-log.ts';

export type Retained = Pick<OrganisationTable, 'id' | 'retention' | 'retention_seal'>;

/** Lists organisations with a retention, as JSON, without those whose restored store awaits a review. */
export async function listRetentions(db: Db): Promise<Retained[]> {
  return await db
    .selectFrom('organisations')
    .select(['id', 'retention', 'retention_seal'])
    .where('retention', 'is not', null)
    .where('restored', 'is', null)
    .orderBy('id')
    .execute();
}

/** Lists retentions without a seal, which would prove that an admin set them. */
export async function listUnsealedRetentions(db: Db): Promise<Pick<Retained, 'id' | 'retention'>[]> {
  return await db
    .selectFrom('organisations')
    .select(['id', 'retention'])
    .where('retention', 'is not', null)
    .where('retention_seal', 'is', null)
    .execute();
}

/** Stores the seal of a retention, unless the retention was changed since it was read. */
export async function putRetentionSeal(db: Db, { id, retention, retention_seal }: Retained): Promise<void> {
  await db
    .updateTable('organisations')
    .set({ retention_seal })
    .where('id', '=', id)
    .where('retention', '=', retention)
    .execute();
}

/** Returns how far rows of a kind were announced and deleted. */
export async function findPurge(db: Db, organisationId: string, kind: RetainedKind): Promise<AuditPurgeTable> {
  const row = await db
    .selectFrom('audit_purges')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('kind', '=', kind)
    .executeTakeFirst();
  return row ?? { organisation_id: organisationId, kind, next_index: 0, announced_index: 0, event_id: null };
}

/** Returns the index in the receipt log from which on no row of an organisation was deleted by retention. */
export async function purgedUntil(db: Db, organisationId: string): Promise<number> {
  const { end } = await db
    .selectFrom('audit_purges')
    .select((eb) => eb.fn.max('announced_index').as('end'))
    .where('organisation_id', '=', organisationId)
    .executeTakeFirstOrThrow();
  return Number(end ?? 0);
}

/** Moves the end of the announced range, with its event; null: there was nothing to announce. False: another process has moved it. */
export async function moveAnnounced(
  db: Db,
  before: AuditPurgeTable,
  { to, eventId }: { to: number; eventId: string | null },
): Promise<boolean> {
  const event_id = eventId ?? before.event_id;
  const moved = await db
    .insertInto('audit_purges')
    .values({ ...before, announced_index: to, event_id })
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'kind'])
        .doUpdateSet({ announced_index: to, event_id })
        .where('audit_purges.announced_index', '=', before.announced_index),
    )
    .returning('next_index')
    .executeTakeFirst();
  return moved !== undefined;
}

/** Moves the end of the deleted range. False: another process has moved it. */
export async function moveDeleted(db: Db, before: AuditPurgeTable, to: number): Promise<boolean> {
  const moved = await db
    .updateTable('audit_purges')
    .set({ next_index: to })
    .where('organisation_id', '=', before.organisation_id)
    .where('kind', '=', before.kind)
    .where('next_index', '=', before.next_index)
    .returning('next_index')
    .executeTakeFirst();
  return moved !== undefined;
}

const isRead = sql<boolean>`(coalesce(result, '') = 'allowed' and coalesce(method, '') in ('GET', 'HEAD'))`;
const OF_KIND: Record<RetainedKind, RawBuilder<boolean>> = {
  reads: sql<boolean>`kind = 'action' and ${isRead}`,
  calls: sql<boolean>`kind = 'action' and not ${isRead}`,
  events: sql<boolean>`kind = 'event' and reason <> ${sql.lit(PURGED)}`,
};

const among =
  (organisationId: string, ids: readonly string[], kind: RetainedKind) =>
  (eb: ExpressionBuilder<Schema, 'audit_rows'>) =>
    eb.and([eb('organisation_id', '=', organisationId), eb('id', 'in', ids), eb('state', '=', 'final'), OF_KIND[kind]]);

/** Returns which of these rows exist and are of this kind. */
export async function findRowsOf(
  db: Db,
  organisationId: string,
  ids: readonly string[],
  kind: RetainedKind,
): Promise<AuditRow[]> {
  if (ids.length === 0) return [];
  return await db
    .selectFrom('audit_rows')
    .selectAll()
    .where(among(organisationId, ids, kind))
    .execute();
}

/** Deletes these rows. */
export async function deleteRowsOf(db: Db, organisationId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.deleteFrom('audit_rows').where('organisation_id', '=', organisationId).where('id', 'in', ids).execute();
}
