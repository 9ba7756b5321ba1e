/** Creates and removes single platforms; governance files use the same steps. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import { findPlatform, putPlatform } from '../../store/governed-versions.ts';
import { deletePlatform, listLiveGrants } from '../../store/platforms.ts';
import { agentsNamed } from '../agents/find-agent.ts';
import { ChangeRefused } from '../refused.ts';
import { type GivenSecrets, keptEntry, readPlatformEntry, secretsFor } from './platform-entry.ts';
import { writePlatformSecrets } from './platform-secrets.ts';
import { type ReadPlatform, readPlatform } from './platforms.ts';

/** `entry`: as under `platforms` of a governance file; the secrets that its `auth` references come in `secrets`. */
export type NewPlatform = {
  platformId: string;
  entry: Readonly<Record<string, unknown>>;
  secrets: GivenSecrets;
};

/**
 * Creates a platform, which must not exist yet.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is created
 */
export async function makePlatform(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  { platformId, entry, secrets }: NewPlatform,
): Promise<ReadPlatform> {
  const { vault, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const manifest = readPlatformEntry(entry);
  const given = secretsFor(manifest, secrets, []);
  const change = { reason: 'platform_created', platform: platformId };
  return await recordInTurn(services, by, change, async (tx, note) => {
    if (await findPlatform(tx, organisationId, platformId))
      throw new ChangeRefused(
        'conflict',
        `There is a platform "${platformId}" already: choose another id, or connect that one.`,
      );
    const texts = { manifest: JSON.stringify(manifest), entry: keptEntry(entry) };
    await putPlatform(tx, { organisationId, platformId, ...texts }, clock());
    const change = { organisationId, platformId, manifest: undefined, secrets: given };
    await writePlatformSecrets(tx, vault, change, clock());
    const { kind, base_url, auth } = manifest;
    note({ kind, base_url, auth: auth.type });
    return await readPlatform(tx, organisationId, platformId);
  });
}

/**
 * Removes a platform without connections, and without grants of agents that are not revoked.
 *
 * @throws ChangeRefused, or AuditUnavailable: then it still exists
 */
export async function removePlatform(services: Changing, by: ChangingOwner, platformId: string): Promise<void> {
  const { organisation_id: organisationId } = by.owner;
  // An unknown platform must not be recorded: audit rows name existing platforms only.
  await readPlatform(services.broker.store.db, organisationId, platformId);
  await recordInTurn(services, by, { reason: 'platform_removed', platform: platformId }, async (tx) => {
    const { connections } = await readPlatform(tx, organisationId, platformId);
    if (connections.length > 0)
      throw new ChangeRefused('conflict', 'This platform has connections. Remove them first.');
    // Grants of revoked agents and of children stay, and allow nothing without the platform.
    const grants = await listLiveGrants(tx, organisationId, platformId);
    const agents = [...new Map(grants.map((grant) => [grant.agent_id, grant])).values()];
    if (agents.length > 0)
      throw new ChangeRefused(
        'conflict',
        `This platform is granted to ${agentsNamed(agents)}. Remove these grants first.`,
      );
    await deletePlatform(tx, organisationId, platformId);
  });
}
