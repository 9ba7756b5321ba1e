/** An organisation's switch over a platform. */
import type { PlatformTable } from './schema.ts';
import type { Db } from './store.ts';

/** Throws the switch, in one guarded statement. Answers the platform, or undefined: it stood so already, or there is none. */
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
