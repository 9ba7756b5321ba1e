/** An organisation's platforms, and suspending them; manifests are in governed-versions.ts. */
import type { PlatformTable } from './schema.ts';
import type { Db } from './store.ts';

/** Suspends or resumes a platform in one guarded statement. Returns it, or undefined: already so, or no such platform. */
export async function switchPlatform(
  db: Db,
  platform: { organisationId: string; platformId: string },
  to: { suspended: boolean },
): Promise<PlatformTable | undefined> {
  const suspended = to.suspended ? 1 : 0;
  return await db
    .updateTable('platforms')
    .set({ suspended })
    .where('organisation_id', '=', platform.organisationId)
    .where('platform_id', '=', platform.platformId)
    .where('suspended', '!=', suspended)
    .returningAll()
    .executeTakeFirst();
}

/** An organisation's platforms with their manifests (JSON text). */
export async function listPlatforms(db: Db, organisationId: string): Promise<(PlatformTable & { manifest: string })[]> {
  return await db
    .selectFrom('platforms as p')
    .innerJoin('platform_versions as v', (j) =>
      j
        .onRef('v.organisation_id', '=', 'p.organisation_id')
        .onRef('v.platform_id', '=', 'p.platform_id')
        .onRef('v.version', '=', 'p.version'),
    )
    .selectAll('p')
    .select('v.manifest')
    .where('p.organisation_id', '=', organisationId)
    .orderBy('p.platform_id')
    .execute();
}

/** Deletes a platform with its secrets; its manifests are kept, because receipts refer to them. */
export async function deletePlatform(db: Db, organisationId: string, platformId: string): Promise<void> {
  await db
    .deleteFrom('platform_secrets')
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .execute();
  await db
    .deleteFrom('platforms')
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .execute();
}
