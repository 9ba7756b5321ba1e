/** Undecided registrations: counting, displacing and expiring them. */
import type { KnownRegistration } from './registrations.ts';
import type { Db } from './store.ts';
import type { RegistrationTable } from './tables/registrations.ts';

export type OpenRegistration = Pick<
  RegistrationTable,
  'token_hash' | 'organisation_id' | 'id' | 'source' | 'expires_at'
>;

/** Lists pending registrations for this owner id, which may be unknown; earliest expiry first. */
export async function listOpenRegistrations(db: Db, ownerId: string, now: number): Promise<OpenRegistration[]> {
  return await db
    .selectFrom('registrations')
    .select(['token_hash', 'organisation_id', 'id', 'source', 'expires_at'])
    .where('owner_id', '=', ownerId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .orderBy('expires_at')
    .orderBy('id')
    .execute();
}

/** Returns the sources of an owner's rejected registrations whose original deadline has not passed yet. */
export async function listRejectedSources(
  db: Db,
  { organisationId, ownerId, now }: { organisationId: string; ownerId: string; now: number },
): Promise<Pick<RegistrationTable, 'source' | 'expires_at'>[]> {
  return await db
    .selectFrom('registrations')
    .select(['source', 'expires_at'])
    .where('organisation_id', '=', organisationId)
    .where('owner_id', '=', ownerId)
    .where('status', '=', 'rejected')
    .where('expires_at', '>', now)
    .execute();
}

/** Expires a pending registration before its deadline; its `expires_at` becomes `now`. */
export async function displaceRegistration(
  db: Db,
  { token_hash }: Pick<RegistrationTable, 'token_hash'>,
  now: number,
): Promise<void> {
  await db
    .updateTable('registrations')
    .set({ status: 'expired', expires_at: now })
    .where('token_hash', '=', token_hash)
    .where('status', '=', 'pending')
    .execute();
}

/** Lists the pending registrations of an organisation, earliest expiry first. */
export async function listPendingRegistrations(
  db: Db,
  organisationId: string,
  now: number,
): Promise<KnownRegistration[]> {
  const found = await db
    .selectFrom('registrations')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .orderBy('expires_at')
    .orderBy('id')
    .execute();
  return found as KnownRegistration[];
}

/** Expires pending registrations whose deadline has passed. Returns which; those for unknown owners have no organisation. */
export async function expireOpenRegistrations(
  db: Db,
  now: number,
): Promise<Pick<RegistrationTable, 'organisation_id' | 'id'>[]> {
  return await db
    .updateTable('registrations')
    .set({ status: 'expired' })
    .where('status', '=', 'pending')
    .where('expires_at', '<=', now)
    .returning(['organisation_id', 'id'])
    .execute();
}
