/** Platforms of an organisation, and suspending them; manifests are in governed-versions.ts. */

import type { Db } from './store.ts';
import type { PlatformTable, PlatformVersionTable } from './tables/platforms.ts';

/** Suspends or resumes a platform in one guarded statement. Returns it; undefined: it has that state already, or does not exist. */
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

/** Selects an organisation's platforms, joined with their current manifest version. */
const inForce = (db: Db, organisationId: string) =>
  db
    .selectFrom('platforms as p')
    .innerJoin('platform_versions as v', (j) =>
      j
        .onRef('v.organisation_id', '=', 'p.organisation_id')
        .onRef('v.platform_id', '=', 'p.platform_id')
        .onRef('v.version', '=', 'p.version'),
    )
    .where('p.organisation_id', '=', organisationId);

/** A platform with its current manifest, and the entry it was generated from (JSON texts). */
export type PlatformInForce = PlatformTable & Pick<PlatformVersionTable, 'manifest' | 'entry'>;

/** An organisation's platforms. */
export async function listPlatforms(db: Db, organisationId: string): Promise<PlatformInForce[]> {
  return await inForce(db, organisationId)
    .selectAll('p')
    .select(['v.manifest', 'v.entry'])
    .orderBy('p.platform_id')
    .execute();
}

/** Returns the current manifests (JSON text) of these platforms of an organisation. */
export async function findManifestsOf(
  db: Db,
  organisationId: string,
  platformIds: readonly string[],
): Promise<{ platform_id: string; manifest: string }[]> {
  return await inForce(db, organisationId)
    .select(['p.platform_id', 'v.manifest'])
    .where('p.platform_id', 'in', platformIds)
    .execute();
}

/** Grants on a platform, by the agent's name; none of revoked agents, and none of children, who have no more than their parents. */
export async function listLiveGrants(
  db: Db,
  organisationId: string,
  platformId: string,
): Promise<{ name: string; agent_id: string; grant_id: string; scopes: string }[]> {
  return await db
    .selectFrom('grants as g')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'g.organisation_id').onRef('a.id', '=', 'g.agent_id'),
    )
    .select(['a.name', 'a.agent_id', 'g.id as grant_id', 'g.scopes'])
    .where('g.organisation_id', '=', organisationId)
    .where('g.platform_id', '=', platformId)
    .where('a.status', 'not in', ['revoked', 'deleted'])
    .where('a.parent_id', 'is', null)
    .orderBy('a.name')
    .orderBy('a.agent_id')
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
