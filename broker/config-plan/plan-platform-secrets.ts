/** Plans client ids, client secrets and private keys that platforms reference: compared in memory, stored sealed, and never shown. */

import { whyNotPlatformSecret, writePlatformSecrets } from '../admin/platforms/platform-secrets.ts';
import { platformReferences, type Reference, referenceKey } from '../config-file/secrets.ts';
import type { Secret } from '../crypto/secret.ts';
import type { PlatformSecretTable } from '../store/tables/platforms.ts';
import { PLATFORM_SECRETS, type PlatformSecretName } from '../token-source/platform-secret.ts';
import { addProblem, addStep, holdsSecret, leaveOut, type Planning } from './planning.ts';

/** `secret`: undefined when it is no longer used, or was not compared. */
type Move = { name: PlatformSecretName; detail: string; secret: Secret | undefined };

/** Runs after the platforms, whose rows have to exist. */
export function planPlatformSecrets(planning: Planning): void {
  const { governance, present, organisationId, vault, now, comparesSecrets } = planning;
  for (const [platformId, manifest] of governance.manifests) {
    const known = present.platformSecrets.filter((secret) => secret.platform_id === platformId);
    const references = new Map(platformReferences(manifest));
    const moves = PLATFORM_SECRETS.flatMap((name): Move[] => {
      const reference = references.get(name);
      const before = known.find((one) => one.name === name);
      if (reference) return planSecret(planning, { platformId, name, before }, reference);
      return before ? [{ name, detail: `auth.${name}: removed`, secret: undefined }] : [];
    });
    if (moves.length === 0) continue;
    const details = moves.map(({ detail }) => detail);
    const secrets = moves.map(({ name, secret }) => [name, secret] as const);
    const change = { organisationId, platformId, manifest: present.platforms.get(platformId), secrets };
    addStep(planning, { action: 'update', kind: 'platform', name: platformId, details }, async (db, { former }) => {
      if (!comparesSecrets) throw new Error('A plan that does not compare secrets cannot be applied.');
      former.push(...(await writePlatformSecrets(db, vault, change, now)));
    });
  }
}

function planSecret(
  planning: Planning,
  {
    platformId,
    name,
    before,
  }: { platformId: string; name: PlatformSecretName; before: PlatformSecretTable | undefined },
  reference: Reference,
): Move[] {
  if (!planning.comparesSecrets) return before ? [] : [{ name, detail: `auth.${name}: given`, secret: undefined }];
  const key = referenceKey(reference);
  const secret = planning.resolved.get(key);
  if (!secret) {
    const manifest = planning.present.platforms.get(platformId);
    const stored = manifest && new Map(platformReferences(manifest)).get(name);
    const isStored = before !== undefined && stored !== undefined && referenceKey(stored) === key;
    leaveOut(planning, ['platforms', platformId, 'auth', name], [key], isStored);
    return [];
  }
  const problem = whyNotPlatformSecret(name, secret);
  if (problem !== undefined) {
    addProblem(planning, ['platforms', platformId, 'auth', name], `the value of ${key} ${problem}.`);
    return [];
  }
  if (before && holds(planning, before, secret)) return [];
  return [{ name, detail: `auth.${name}: ${before ? 'changed' : 'given'}`, secret }];
}

/** Whether the stored secret equals this one. One that cannot be opened counts as different, and is replaced. */
const holds = ({ vault, organisationId }: Planning, { id, value }: PlatformSecretTable, secret: Secret): boolean =>
  holdsSecret(vault, { table: 'platform_secrets', organisationId, rowId: id }, value, secret) === true;
