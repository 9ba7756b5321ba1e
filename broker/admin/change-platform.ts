/** Owners give a platform that is their own another manifest; a governance file does the same with the same steps. */

import { type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { sameJson } from '../config-file/differences.ts';
import { platformReferences } from '../config-file/secrets.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { builtinOf } from '../platforms/presets.ts';
import { listGrants } from '../store/agents.ts';
import { putPlatform } from '../store/governed-versions.ts';
import { countGivenTokens } from '../store/people.ts';
import { listPlatformSecrets } from '../store/platform-secrets.ts';
import type { Db } from '../store/store.ts';
import { readScopes } from '../store/stored-terms.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { PLATFORM_SECRETS } from '../token-source/platform-secret.ts';
import { endTokens, type FormerConnection } from './end-tokens.ts';
import { refuseOtherVersion } from './given-rules.ts';
import { listedChanges } from './listed-changes.ts';
import { credentialWarnings, manifestDifference } from './manifest-difference.ts';
import { type GivenSecrets, readPlatformEntry, secretsFor } from './platform-entry.ts';
import { writePlatformSecrets } from './platform-secrets.ts';
import { type ReadPlatform, readPlatform } from './platforms.ts';
import { ChangeRefused } from './refused.ts';

/**
 * `entry`: the whole manifest that it shall have. `secrets`: those that its `auth` references, as far as they are new or others. `seen`: the
 * version that was changed to this one; when another is in force by now, nothing is changed. `tries`: says what it would change, and
 * changes nothing.
 */
export type NewManifest = {
  platformId: string;
  entry: Readonly<Record<string, unknown>>;
  secrets: GivenSecrets;
  seen: number;
  tries: boolean;
};

/** `changes`: lines such as `base_url: https://a.example → https://b.example`, never a secret. `warnings`: what follows from them. */
export type ChangedPlatform = { platform: ReadPlatform; changes: string[]; warnings: string[] };

/**
 * In force from the very next call on. Saying what is there already changes nothing and is no event.
 *
 * @throws ChangeRefused; AuditUnavailable, and then nothing is changed
 */
export async function changePlatform(
  services: Changing & { oauth: OAuthConnections } & Uses<'vault' | 'outbound'>,
  by: ChangingOwner,
  { platformId, entry, secrets, seen, tries }: NewManifest,
): Promise<ChangedPlatform> {
  const { store, vault, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  // Not on record what is none: a row names platforms that there are.
  await readPlatform(store.db, organisationId, platformId);
  const manifest = readPlatformEntry(entry);
  let former: FormerConnection[] = [];
  const change = { reason: 'platform_changed', platform: platformId };
  const done = await recordInTurn(services, by, change, async (tx, note) => {
    const before = await readPlatform(tx, organisationId, platformId);
    refuseBuiltIn(before.manifest, manifest);
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
      await putPlatform(tx, { organisationId, platformId, manifest: JSON.stringify(manifest) }, clock());
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

/** What comes with the broker changes with the broker; a file says beside `use` what is another here. */
function refuseBuiltIn(before: Manifest, after: Manifest): void {
  const builtin = builtinOf(before);
  if (builtin)
    throw new ChangeRefused(
      'conflict',
      `This is the built-in platform ${builtin}, whose manifest comes with the broker. A governance file with use: ${builtin} may say what is different here.`,
    );
  const becomes = builtinOf(after);
  if (becomes)
    throw new ChangeRefused(
      'invalid_request',
      `entry: this is the built-in platform ${becomes}: connect that one as a platform of its own.`,
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
  const grants = (await listGrants(tx, organisationId)).filter((grant) => grant.platform_id === platformId);
  for (const scope of Object.keys(scopes).filter((one) => !Object.hasOwn(after.scopes, one))) {
    const holding = new Set(
      grants.filter((grant) => readScopes(grant.scopes, grant.id).includes(scope)).map((grant) => grant.agent_id),
    ).size;
    if (holding > 0)
      warnings.push(
        `The scope ${scope} goes, and ${holding === 1 ? 'an agent holds' : `${holding} agents hold`} it: it allows nothing any more.`,
      );
  }
  return warnings;
}
