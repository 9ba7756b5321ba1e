/**
 * Replaces the manifest of an organisation's own platform, and updates built-in platforms to the manifest of this release. Governance files use the
 * same steps.
 */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import { sameJson } from '../../config-file/differences.ts';
import { platformReferences } from '../../config-file/secrets.ts';
import type { OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { builtinOf } from '../../platforms/presets.ts';
import { countGivenTokens } from '../../store/given-tokens.ts';
import { putPlatform } from '../../store/governed-versions.ts';
import { listPlatformSecrets } from '../../store/platform-secrets.ts';
import { listLiveGrants } from '../../store/platforms.ts';
import type { Db } from '../../store/store.ts';
import { readScopes } from '../../store/stored-terms.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import { PLATFORM_SECRETS } from '../../token-source/platform-secret.ts';
import { endTokens, type FormerConnection } from '../agents/end-tokens.ts';
import { listedChanges } from '../listed-changes.ts';
import { refuseOtherVersion } from '../policies/check-rules.ts';
import { ChangeRefused } from '../refused.ts';
import { credentialWarnings, manifestDifference } from './manifest-difference.ts';
import { newestEntry } from './newest-manifest.ts';
import { type GivenSecrets, keptEntry, readPlatformEntry, secretsFor } from './platform-entry.ts';
import { writePlatformSecrets } from './platform-secrets.ts';
import { type ReadPlatform, readPlatform } from './platforms.ts';

/**
 * `entry`: the complete new manifest. `secrets`: those that its `auth` references, as far as they are new or changed. `seen`: the version that was
 * edited; when another is in force by now, nothing is changed. `tries`: returns what would change, without changing it.
 */
export type NewManifest = {
  platformId: string;
  entry: Readonly<Record<string, unknown>>;
  secrets: GivenSecrets;
  seen: number;
  tries: boolean;
};

/** `changes`: lines such as `base_url: https://a.example → https://b.example`, never a secret. `warnings`: consequences of the changes. */
export type ChangedPlatform = { platform: ReadPlatform; changes: string[]; warnings: string[] };

/** `seen`, `tries`: see NewManifest. */
export type Update = Pick<NewManifest, 'platformId' | 'seen' | 'tries'>;

type Services = Changing & { oauth: OAuthConnections } & Uses<'vault' | 'outbound'>;

/**
 * Changes a platform. In force from the next call. Giving the current manifest again changes nothing and records no event.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function changePlatform(
  services: Services,
  by: ChangingOwner,
  { entry, ...asked }: NewManifest,
): Promise<ChangedPlatform> {
  return await replaceManifest(services, by, asked, () => {
    const manifest = readPlatformEntry(entry);
    return (before) => {
      refuseBuiltIn(before.manifest, manifest);
      return { manifest, entry: null };
    };
  });
}

/**
 * Gives a built-in platform the manifest of this release, keeping the organisation's own settings. Otherwise the same as `changePlatform`.
 *
 * @throws ChangeRefused, also for a platform that is not built in; or AuditUnavailable: then nothing is changed
 */
export async function updatePlatform(services: Services, by: ChangingOwner, asked: Update): Promise<ChangedPlatform> {
  return await replaceManifest(services, by, { ...asked, secrets: {} }, () => (before) => {
    const entry = newestEntry(before);
    if (entry === undefined)
      throw new ChangeRefused(
        'conflict',
        'This platform is not built in, so no release contains another manifest for it.',
      );
    return { manifest: readPlatformEntry(entry), entry: keptEntry(entry) };
  });
}

/**
 * `prepare` is called after the platform was found; the function it returns is called in the transaction with the current platform, and returns the
 * new manifest and what is stored beside it. Both throw ChangeRefused.
 */
async function replaceManifest(
  services: Services,
  by: ChangingOwner,
  { platformId, secrets, seen, tries }: Update & Pick<NewManifest, 'secrets'>,
  prepare: () => (before: ReadPlatform) => { manifest: Manifest; entry: string | null },
): Promise<ChangedPlatform> {
  const { store, vault, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  // An unknown platform must not be recorded: audit rows name existing platforms only.
  await readPlatform(store.db, organisationId, platformId);
  const next = prepare();
  let former: FormerConnection[] = [];
  const change = { reason: 'platform_changed', platform: platformId };
  const done = await recordInTurn(services, by, change, async (tx, note) => {
    const before = await readPlatform(tx, organisationId, platformId);
    const { manifest, entry } = next(before);
    refuseOtherVersion(seen, before.version);
    const stored = (await listPlatformSecrets(tx, organisationId, platformId)).map(({ name }) => name);
    const given = secretsFor(manifest, secrets, stored);
    const needed = platformReferences(manifest).map(([name]) => name);
    const unused = PLATFORM_SECRETS.filter((name) => stored.includes(name) && !needed.includes(name));
    const changes = [
      ...manifestDifference(before.manifest, manifest),
      ...given.map(([name]) => `auth.${name}: ${stored.includes(name) ? 'changed' : 'given'}`),
      ...unused.map((name) => `auth.${name}: removed`),
    ];
    const warnings = await warningsOf(tx, before, manifest);
    if (tries || changes.length === 0) return rollback({ platform: before, changes, warnings });
    if (!sameJson(before.manifest, manifest))
      await putPlatform(tx, { organisationId, platformId, manifest: JSON.stringify(manifest), entry }, clock());
    former = await writePlatformSecrets(
      tx,
      vault,
      {
        organisationId,
        platformId,
        manifest: before.manifest,
        secrets: [...given, ...unused.map((name) => [name, undefined] as const)],
      },
      clock(),
    );
    const platform = await readPlatform(tx, organisationId, platformId);
    note({ version: platform.version, ...listedChanges(changes) });
    return { platform, changes, warnings };
  });
  for (const one of former) await endTokens(services, one);
  return done instanceof RolledBack ? done.reason : done;
}

/** Built-in manifests are updated with the broker's release; local differences are set beside `use` in a governance file. */
function refuseBuiltIn(before: Manifest, after: Manifest): void {
  const builtin = builtinOf(before);
  if (builtin)
    throw new ChangeRefused(
      'conflict',
      `This is the built-in platform ${builtin}, whose manifest comes with the broker: update it to this release's. A governance file with use: ${builtin} may say what is different here.`,
    );
  const becomes = builtinOf(after);
  if (becomes)
    throw new ChangeRefused(
      'invalid_request',
      `entry: this is the built-in platform ${becomes}: connect that one as a separate platform.`,
    );
}

async function warningsOf(tx: Db, before: ReadPlatform, after: Manifest): Promise<string[]> {
  const { platform_id: platformId, organisation_id: organisationId, connections } = before;
  const { scopes } = before.manifest;
  const given = (await countGivenTokens(tx, organisationId)).filter((one) => one.platform_id === platformId);
  const warnings = credentialWarnings(before.manifest, after, {
    connections: connections.filter(({ credential }) => credential !== null).length,
    people: given.reduce((sum, { count }) => sum + count, 0),
  });
  const grants = await listLiveGrants(tx, organisationId, platformId);
  const holders = (scope: string): number =>
    new Set(
      grants
        .filter(({ scopes, grant_id: id }) => readScopes(scopes, id).includes(scope))
        .map((grant) => grant.agent_id),
    ).size;
  for (const [scope, rules] of Object.entries(scopes)) {
    const gone = !Object.hasOwn(after.scopes, scope);
    const more = (after.scopes[scope] ?? []).filter((rule) => !rules.includes(rule));
    const holding = gone || more.length > 0 ? holders(scope) : 0;
    if (holding === 0) continue;
    const who = holding === 1 ? 'an agent holds it' : `${holding} agents hold it`;
    warnings.push(
      gone
        ? `The scope ${scope} is removed, and ${who}: it no longer allows anything.`
        : `The scope ${scope} allows ${rulesNamed(more)} as well, and ${who}.`,
    );
  }
  return warnings;
}

const MAX_LISTED_RULES = 3;

const rulesNamed = (rules: readonly string[]): string =>
  [
    ...rules.slice(0, MAX_LISTED_RULES),
    ...(rules.length > MAX_LISTED_RULES ? [`${rules.length - MAX_LISTED_RULES} more`] : []),
  ].join(', ');
