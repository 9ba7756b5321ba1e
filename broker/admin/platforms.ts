/** Platforms, as owners read them and switch them off. */
import { type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import { readManifest } from '../facts/stored-manifests.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { listConnections } from '../store/connections.ts';
import { listPlatforms, type PlatformInForce, switchPlatform as switchStored } from '../store/platforms.ts';
import type { Db } from '../store/store.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import { ChangeRefused } from './refused.ts';

/** A platform with the manifest in force and its connections, credentials sealed. */
export type ReadPlatform = Omit<PlatformInForce, 'manifest'> & { manifest: Manifest; connections: ConnectionTable[] };

/** All of an organisation, by id. */
export async function readPlatforms(db: Db, organisationId: string): Promise<ReadPlatform[]> {
  const connections = Map.groupBy(await listConnections(db, organisationId), (one) => one.platform_id);
  const platforms = await listPlatforms(db, organisationId);
  return platforms.map((one) => ({
    ...one,
    manifest: readManifest(one),
    connections: connections.get(one.platform_id) ?? [],
  }));
}

/** One of them. Throws ChangeRefused not_found. */
export async function readPlatform(db: Db, organisationId: string, platformId: string): Promise<ReadPlatform> {
  const found = (await readPlatforms(db, organisationId)).find((one) => one.platform_id === platformId);
  if (!found) throw new ChangeRefused('not_found', 'The organisation has no such platform.');
  return found;
}

export type PlatformSwitch = { platformId: string; suspended: boolean; detail: string | null };

/**
 * The organisation's switch, in force at the very next decision. Answers the platform as it is then.
 *
 * @throws ChangeRefused, also when it is so already; AuditUnavailable, and then nothing is changed
 */
export async function switchPlatform(
  services: Changing,
  by: ChangingOwner,
  { platformId, suspended, detail }: PlatformSwitch,
): Promise<ReadPlatform> {
  const { organisation_id: organisationId } = by.owner;
  // Not on record what is none: a row names platforms that there are.
  await readPlatform(services.broker.store.db, organisationId, platformId);
  const change = { reason: suspended ? 'platform_suspended' : 'platform_resumed', detail, platform: platformId };
  return await recordChange(services, by, change, async (tx) => {
    const moved = await switchStored(tx, { organisationId, platformId }, { suspended });
    if (!moved)
      throw new ChangeRefused('conflict', `This platform is ${suspended ? 'suspended already' : 'not suspended'}.`);
    return await readPlatform(tx, organisationId, platformId);
  });
}
