/** Switches tokens per person on and off for a platform, and sets which sources may assert who a person is. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { loadManifests } from '../../facts/stored-manifests.ts';
import type { PerPerson } from '../../people/people.ts';
import { listConnections } from '../../store/connections.ts';
import { countGivenTokens } from '../../store/given-tokens.ts';
import { putPlatform } from '../../store/governed-versions.ts';
import { storedEntry } from '../platforms/platform-entry.ts';
import { readPlatform } from '../platforms/platforms.ts';
import { ChangeRefused } from '../refused.ts';

/** Numbers of people who gave tokens for a platform, by state; never who. */
export type PeopleOfPlatform = {
  platform_id: string;
  name: string;
  /** Null: tokens per person were never switched on. */
  per_person: PerPerson | null;
  unconfirmed: number;
  active: number;
  reauth_needed: number;
  /** The connections for which people gave these tokens, oldest first. */
  connections: { id: string; label: string }[];
};

/** Lists all platforms that support tokens per person, and those for which somebody gave tokens; by id. */
export async function peopleByPlatform(
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
): Promise<PeopleOfPlatform[]> {
  const manifests = await loadManifests(store.db, organisationId);
  const counts = await countGivenTokens(store.db, organisationId);
  const connections = counts.length === 0 ? [] : await listConnections(store.db, organisationId);
  const suitable = [...manifests].filter(([, { auth }]) => auth.type === 'oauth2').map(([id]) => id);
  const ids = [...new Set([...suitable, ...counts.map(({ platform_id: id }) => id)])].sort();
  return ids.map((id) => {
    const of = counts.filter(({ platform_id: platform }) => platform === id);
    const given = new Set(of.map(({ connection_id: connection }) => connection));
    const count = (wanted: (one: (typeof of)[number]) => boolean) =>
      of.filter(wanted).reduce((sum, one) => sum + one.count, 0);
    return {
      platform_id: id,
      name: manifests.get(id)?.name ?? id,
      per_person: manifests.get(id)?.per_person ?? null,
      unconfirmed: count(({ standing }) => standing === 'unconfirmed'),
      active: count(({ standing, status }) => standing === 'kept' && status === 'active'),
      reauth_needed: count(({ standing, status }) => standing === 'kept' && status === 'reauth_needed'),
      connections: connections
        .filter((one) => given.has(one.id))
        .map(({ id: connection, label }) => ({ id: connection, label })),
    };
  });
}

/**
 * In force from the next call, as a new version of the platform's manifest. Existing tokens stay unchanged.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function setPerPerson(
  services: Changing,
  by: ChangingOwner,
  { platformId, perPerson }: { platformId: string; perPerson: PerPerson },
): Promise<PerPerson> {
  const { store, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  if (!(await loadManifests(store.db, organisationId)).has(platformId))
    throw new ChangeRefused('not_found', 'The organisation has no such platform.');
  const change = { reason: 'per_person_changed', platform: platformId };
  return await recordInTurn(services, by, change, async (tx, note) => {
    const platform = await readPlatform(tx, organisationId, platformId);
    const { manifest } = platform;
    if (manifest.auth.type !== 'oauth2')
      throw new ChangeRefused('conflict', 'This platform is not connected by OAuth, so people cannot connect to it.');
    const { enabled, asserted = [], asserted_consent: consent = 'confirm' } = perPerson;
    note({ enabled, asserted, asserted_consent: consent });
    const entry = storedEntry(platform);
    const changed = (one: object): string => JSON.stringify({ ...one, per_person: perPerson });
    const texts = { manifest: changed(manifest), entry: entry && changed(entry) };
    await putPlatform(tx, { organisationId, platformId, ...texts }, clock());
    return perPerson;
  });
}
