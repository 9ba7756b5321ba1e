/** Reads an organisation's platforms and switches them off and on. */
import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../../audit/record-change.ts';
import { readManifest } from '../../facts/stored-manifests.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { listConnections } from '../../store/connections.ts';
import { listPlatforms, type PlatformInForce, switchPlatform as switchStored } from '../../store/platforms.ts';
import type { Db } from '../../store/store.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import { ChangeRefused } from '../refused.ts';

/** A platform with the manifest in force and its connections; credentials stay sealed. */
export type ReadPlatform = Omit<PlatformInForce, 'manifest'> & { manifest: Manifest; connections: ConnectionTable[] };

/** Lists all platforms of an organisation, by id. */
export async function readPlatforms(db: Db, organisationId: string): Promise<ReadPlatform[]> {
  const connections = Map.groupBy(await listConnections(db, organisationId), (one) => one.platform_id);
  const platforms = await listPlatforms(db, organisationId);
  return platforms.map((one) => ({
    ...one,
    manifest: readManifest(one),
    connections: connections.get(one.platform_id) ?? [],
  }));
}

/** Reads one platform. Throws ChangeRefused not_found. */
export async function readPlatform(db: Db, organisationId: string, platformId: string): Promise<ReadPlatform> {
  const found = (await readPlatforms(db, organisationId)).find((one) => one.platform_id === platformId);
  if (!found) throw new ChangeRefused('not_found', 'The organisation has no such platform.');
  return found;
}

export type PlatformSwitch = { platformId: string; suspended: boolean; detail: string | null };

/**
 * Suspends or resumes a platform for the organisation, in force from the next decision. Returns the updated platform.
 *
 * @throws ChangeRefused, also when it is in that state already; or AuditUnavailable: then nothing is changed
 */
export async function switchPlatform(
  services: Changing,
  by: ChangingOwner,
  { platformId, suspended, detail }: PlatformSwitch,
): Promise<ReadPlatform> {
  const { organisation_id: organisationId } = by.owner;
  // An unknown platform must not be recorded: audit rows name existing platforms only.
  await readPlatform(services.broker.store.db, organisationId, platformId);
  const change = { reason: suspended ? 'platform_suspended' : 'platform_resumed', detail, platform: platformId };
  // As for agents (change-agent-status.ts).
  const record = suspended ? recordChange : recordInTurn;
  return await record(services, by, change, async (tx) => {
    const moved = await switchStored(tx, { organisationId, platformId }, { suspended });
    if (!moved)
      throw new ChangeRefused('conflict', `This platform is ${suspended ? 'suspended already' : 'not suspended'}.`);
    return await readPlatform(tx, organisationId, platformId);
  });
}
