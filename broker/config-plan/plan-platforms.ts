/** Plans platforms: a new version of a manifest whenever its content changes. */

import { credentialWarnings, manifestDifference } from '../admin/platforms/manifest-difference.ts';
import { keptEntry } from '../admin/platforms/platform-entry.ts';
import { difference, sameJson } from '../config-file/differences.ts';
import { listNames } from '../config-file/problems.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { putPlatform } from '../store/governed-versions.ts';
import { deletePlatform, switchPlatform } from '../store/platforms.ts';
import { addProblem, addStep, type Planning } from './planning.ts';

export function planPlatforms(planning: Planning): void {
  const { governance, present, organisationId, now } = planning;
  for (const [platformId, manifest] of governance.manifests) {
    const known = present.platforms.get(platformId);
    const isNew = !known || !sameJson(known, manifest);
    // A file never resumes a platform: that is an owner's decision.
    const { suspended, ...entry } = governance.document.platforms?.[platformId] ?? {};
    const suspends = suspended && !present.suspendedPlatforms.has(platformId);
    if (!isNew && !suspends) continue;
    const details = [
      ...(known ? (isNew ? manifestDifference(known, manifest) : []) : summary(manifest)),
      ...(suspends ? difference('suspended', known && false, true) : []),
    ];
    if (known && isNew) warnOfCredentials(planning, platformId, [known, manifest]);
    const change = { action: known ? ('update' as const) : ('create' as const), kind: 'platform' as const };
    addStep(planning, { ...change, name: platformId, details }, async (db) => {
      const texts = { manifest: JSON.stringify(manifest), entry: keptEntry(entry) };
      if (isNew) await putPlatform(db, { organisationId, platformId, ...texts }, now);
      if (suspends) await switchPlatform(db, { organisationId, platformId }, { suspended: true });
    });
  }
}

/** Warns about stored credentials; replacements by the file are listed separately. */
function warnOfCredentials(
  { present, warnings }: Planning,
  platformId: string,
  [before, after]: readonly [Manifest, Manifest],
): void {
  const connections = present.connections.filter((one) => one.platform_id === platformId && one.credential !== null);
  const stored = { connections: connections.length, people: present.givenTokens.get(platformId) ?? 0 };
  for (const message of credentialWarnings(before, after, stored))
    warnings.push({ path: ['platforms', platformId], message });
}

/** Runs after connections and grants: a platform is removed only when nothing refers to it any more. */
export function planPlatformRemovals(planning: Planning): void {
  const { governance, present, organisationId } = planning;
  if (governance.document.platforms === undefined) return;
  for (const platformId of present.platforms.keys()) {
    if (governance.manifests.has(platformId)) continue;
    const granted = planning.futureGrants.filter((grant) => grant.live && grant.platformId === platformId);
    if (granted.length > 0) {
      const agents = new Set(granted.map((grant) => grant.agent));
      addProblem(
        planning,
        ['platforms'],
        `"${platformId}" is no longer listed but is granted to ${listNames(agents)}; remove the grants first.`,
      );
    }
    // With a connections section in the file, a connection to the platform is already a problem of that section.
    const connected = present.connections.filter((connection) => connection.platform_id === platformId);
    if (governance.document.connections === undefined && connected.length > 0) {
      const names = connected.map((connection) => connection.label);
      addProblem(
        planning,
        ['platforms'],
        `"${platformId}" is no longer listed but has the connections ${listNames(names)}; remove them first.`,
      );
    }
    const held = present.heldCalls.get(platformId) ?? 0;
    if (held > 0)
      planning.warnings.push({
        path: ['platforms'],
        message: `"${platformId}" is removed, and ${held === 1 ? '1 held call' : `${held} held calls`} on it can then be approved, but not made.`,
      });
    addStep(planning, { action: 'delete', kind: 'platform', name: platformId, details: [] }, (db) =>
      deletePlatform(db, organisationId, platformId),
    );
  }
}

function summary(manifest: Manifest): string[] {
  return [
    `kind: ${manifest.kind}`,
    `base_url: ${manifest.base_url}`,
    `auth: ${manifest.auth.type}`,
    `scopes: ${Object.keys(manifest.scopes).length}`,
    ...(manifest.per_person?.enabled ? ['per_person: enabled'] : []),
  ];
}
