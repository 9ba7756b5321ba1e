/** Client ids and client secrets that manifests reference, sealed. */

import type { Db } from './store.ts';
import type { PlatformSecretTable } from './tables/platforms.ts';

/** Lists the secrets of an organisation, or of one of its platforms. */
export async function listPlatformSecrets(
  db: Db,
  organisationId: string,
  platformId?: string,
): Promise<PlatformSecretTable[]> {
  let query = db.selectFrom('platform_secrets').selectAll().where('organisation_id', '=', organisationId);
  if (platformId !== undefined) query = query.where('platform_id', '=', platformId);
  return await query.orderBy('platform_id').orderBy('name').execute();
}

/** Inserts or replaces a secret by name, including its id, because the value is sealed for the id. */
export async function putPlatformSecret(db: Db, secret: PlatformSecretTable): Promise<void> {
  const { id, value, created_at } = secret;
  await db
    .insertInto('platform_secrets')
    .values(secret)
    .onConflict((c) => c.columns(['organisation_id', 'platform_id', 'name']).doUpdateSet({ id, value, created_at }))
    .execute();
}

/** Deletes the secret with this name, if there is one. */
export async function deleteNamedPlatformSecret(
  db: Db,
  { organisationId, platformId, name }: { organisationId: string; platformId: string; name: string },
): Promise<void> {
  await db
    .deleteFrom('platform_secrets')
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .where('name', '=', name)
    .execute();
}

/** Deletes all secrets of an organisation's platforms. Returns how many there were. */
export async function deletePlatformSecrets(db: Db, organisationId: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('platform_secrets')
    .where('organisation_id', '=', organisationId)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
