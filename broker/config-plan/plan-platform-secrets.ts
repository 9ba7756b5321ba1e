/** Client ids, client secrets and private keys that platforms name: compared in memory, stored sealed, and never told. */

import { storePlatformSecret, whyNotPlatformSecret } from '../admin/platform-secrets.ts';
import { platformReferences, type Reference, referenceKey } from '../config-file/secrets.ts';
import { SealError } from '../crypto/seal.ts';
import type { Secret } from '../crypto/secret.ts';
import { storeResealed } from '../store/connections.ts';
import { deletePlatformSecret } from '../store/platform-secrets.ts';
import type { PlatformSecretTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { deleteUpstreamTokens } from '../store/upstream-tokens.ts';
import { PLATFORM_SECRETS, type PlatformSecretName } from '../token-source/platform-secret.ts';
import { addProblem, addStep, holdsSecret, type Made, type Planning } from './planning.ts';

type Move = { detail: string; make(db: Db): Promise<void> };

/** After the platforms, which have to be there before. */
export function planPlatformSecrets(planning: Planning): void {
  const { governance, present } = planning;
  for (const [platformId, manifest] of governance.manifests) {
    const known = present.platformSecrets.filter((secret) => secret.platform_id === platformId);
    const references = new Map(platformReferences(manifest));
    const moves = PLATFORM_SECRETS.flatMap((name): Move[] => {
      const reference = references.get(name);
      const before = known.find((one) => one.name === name);
      if (reference) return planSecret(planning, { platformId, name, before }, reference);
      if (!before) return [];
      const make = (db: Db) => deletePlatformSecret(db, planning.organisationId, before.id);
      return [{ detail: `auth.${name}: removed`, make }];
    });
    if (moves.length === 0) continue;
    const details = moves.map(({ detail }) => detail);
    const hadKey = known.some(({ name }) => name === 'private_key');
    addStep(planning, { action: 'update', kind: 'platform', name: platformId, details }, async (db, made) => {
      for (const { make } of moves) await make(db);
      if (hadKey) await endAppTokens(planning, platformId, db, made);
    });
  }
}

/**
 * What was got with another key of the App is revoked. Replicas keep tokens in memory for the credential as it is sealed (see
 * `Installation.given`), so it is sealed again.
 */
async function endAppTokens(
  { organisationId, present, vault }: Planning,
  platformId: string,
  db: Db,
  { former }: Made,
): Promise<void> {
  const manifest = present.platforms.get(platformId);
  for (const connection of present.connections) {
    const { id, credential } = connection;
    if (connection.platform_id !== platformId || credential === null || !manifest) continue;
    const appTokens = await deleteUpstreamTokens(db, { organisationId, connectionId: id });
    if (appTokens.length === 0) continue;
    const place = { table: 'connections', organisationId, rowId: id } as const;
    try {
      await storeResealed(
        db,
        { organisationId, id },
        vault.seal(place, vault.open(place, credential).toString('utf8')),
      );
    } catch (error) {
      // Nobody can use it.
      if (!(error instanceof SealError)) throw error;
    }
    former.push({ connection, manifest, removed: false, appTokens });
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
  const { organisationId, vault, now } = planning;
  if (!planning.comparesSecrets) return before ? [] : [{ detail: `auth.${name}: given`, make: notCompared }];
  const key = referenceKey(reference);
  const secret = planning.resolved.get(key);
  const problem = secret ? whyNotPlatformSecret(name, secret) : 'was not given with the file';
  if (problem !== undefined || !secret) {
    addProblem(planning, ['platforms', platformId, 'auth', name], `the value of ${key} ${problem}.`);
    return [];
  }
  if (before && holds(planning, before, secret)) return [];
  const place = { organisationId, platformId, name };
  const make = (db: Db) => storePlatformSecret(db, vault, place, secret, now);
  return [{ detail: `auth.${name}: ${before ? 'changed' : 'given'}`, make }];
}

const notCompared = async (): Promise<never> => {
  throw new Error('A plan that does not compare secrets cannot be applied.');
};

/** Whether the stored one is this. One that cannot be opened is none: the new one takes its place. */
const holds = ({ vault, organisationId }: Planning, { id, value }: PlatformSecretTable, secret: Secret): boolean =>
  holdsSecret(vault, { table: 'platform_secrets', organisationId, rowId: id }, value, secret) === true;
