/** Platforms: a new version of a manifest whenever it says something else. */

import { listNames } from '../config-file/problems.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { putPlatform } from '../store/governed-versions.ts';
import { deletePlatform, switchPlatform } from '../store/platforms.ts';
import { addProblem, addStep, difference, listDifference, type Planning, sameJson } from './planning.ts';

export function planPlatforms(planning: Planning): void {
  const { governance, present, organisationId, now } = planning;
  for (const [platformId, manifest] of governance.manifests) {
    const known = present.platforms.get(platformId);
    const isNew = !known || !sameJson(known, manifest);
    // Only ever suspended: to resume it is an owner's decision.
    const suspends =
      governance.document.platforms?.[platformId]?.suspended && !present.suspendedPlatforms.has(platformId);
    if (!isNew && !suspends) continue;
    const details = [
      ...(known ? (isNew ? manifestDifference(known, manifest) : []) : summary(manifest)),
      ...(suspends ? difference('suspended', known && false, true) : []),
    ];
    const change = { action: known ? ('update' as const) : ('create' as const), kind: 'platform' as const };
    addStep(planning, { ...change, name: platformId, details }, async (db) => {
      if (isNew) await putPlatform(db, { organisationId, platformId, manifest: JSON.stringify(manifest) }, now);
      if (suspends) await switchPlatform(db, { organisationId, platformId }, { suspended: true });
    });
  }
}

/** After connections and grants: a platform goes when nothing leads to it any more. */
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
        `"${platformId}" is not listed any more but is granted to ${listNames(agents)}; take the grants away first.`,
      );
    }
    // With a section of its own in the file, a connection to it is a problem of that section already.
    const connected = present.connections.filter((connection) => connection.platform_id === platformId);
    if (governance.document.connections === undefined && connected.length > 0) {
      const names = connected.map((connection) => connection.label);
      addProblem(
        planning,
        ['platforms'],
        `"${platformId}" is not listed any more but has the connections ${listNames(names)}; remove them first.`,
      );
    }
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
  ];
}

function manifestDifference(before: Manifest, after: Manifest): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof Manifest)[]);
  fields.delete('scopes');
  fields.delete('sentences');
  const details = [...fields].flatMap((field) =>
    sameJson(before[field] ?? null, after[field] ?? null) ? [] : difference(field, before[field], after[field]),
  );
  const scopes = new Set([...Object.keys(before.scopes), ...Object.keys(after.scopes)]);
  return [
    ...details,
    ...[...scopes].flatMap((scope) => scopeDifference(scope, before.scopes[scope], after.scopes[scope])),
    ...sentencesDifference(before.sentences, after.sentences),
  ];
}

/** So many are told one by one: a built-in platform has hundreds. */
const FEW_SENTENCES = 5;

function sentencesDifference(before: Manifest['sentences'] = {}, after: Manifest['sentences'] = {}): string[] {
  const operations = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = operations.filter((operation) => before[operation] !== after[operation]);
  if (changed.length > FEW_SENTENCES) return [`sentences: ${changed.length} changed`];
  return changed.flatMap((operation) => difference(`sentence ${operation}`, before[operation], after[operation]));
}

function scopeDifference(scope: string, before: readonly string[] | undefined, after: readonly string[] | undefined) {
  if (before === undefined) return [`scope ${scope}: added (${after?.join(', ')})`];
  if (after === undefined) return [`scope ${scope}: removed`];
  return listDifference(`scope ${scope}`, before, after);
}
