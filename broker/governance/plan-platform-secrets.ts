/** Client ids and client secrets that platforms name: compared in memory and stored sealed; nothing of them is ever said. */
import { uuidv4 } from '../crypto/ids.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import { PLATFORM_SECRETS } from '../oauth/registered.ts';
import { deletePlatformSecret, putPlatformSecret } from '../store/platform-secrets.ts';
import type { PlatformSecretTable } from '../store/schema.ts';
import { addProblem, addStep, type Planning } from './planning.ts';
import { platformReferences, type Reference, referenceKey } from './secrets.ts';

/** After the platforms, which have to be there before. */
export function planPlatformSecrets(planning: Planning): void {
  for (const [platformId, manifest] of planning.governance.manifests) {
    const known = planning.present.platformSecrets.filter((secret) => secret.platform_id === platformId);
    const references = new Map(platformReferences(manifest));
    for (const [name, reference] of references) planSecret(planning, platformId, { name, reference, known });
    for (const { id, name } of known) {
      // What the broker is called where it registered itself is no file's to say.
      const isNamed = PLATFORM_SECRETS.some((one) => one === name);
      if (!isNamed || [...references.keys()].some((kept) => kept === name)) continue;
      const change = { action: 'update' as const, kind: 'platform' as const, name: platformId };
      addStep(planning, { ...change, details: [`auth.${name}: removed`] }, (db) =>
        deletePlatformSecret(db, planning.organisationId, id),
      );
    }
  }
}

function planSecret(
  planning: Planning,
  platformId: string,
  { name, reference, known }: { name: string; reference: Reference; known: readonly PlatformSecretTable[] },
): void {
  const { organisationId, vault, now } = planning;
  const key = referenceKey(reference);
  const secret = planning.resolved.get(key);
  const before = known.find((one) => one.name === name);
  if (!secret || secret.reveal() === '') {
    const why = secret ? 'is empty' : 'was not given with the file';
    addProblem(planning, ['platforms', platformId, 'auth', name], `the value of ${key} ${why}.`);
    return;
  }
  if (before && holds(planning, before, secret)) return;
  const id = uuidv4();
  const change = { action: 'update' as const, kind: 'platform' as const, name: platformId };
  addStep(planning, { ...change, details: [`auth.${name}: ${before ? 'changed' : 'given'}`] }, (db) =>
    putPlatformSecret(db, {
      organisation_id: organisationId,
      id,
      platform_id: platformId,
      name,
      value: vault.seal({ table: 'platform_secrets', organisationId, rowId: id }, secret.reveal()),
      created_at: now,
    }),
  );
}

/** Whether the stored one is this. One that cannot be opened is none: the new one takes its place. */
function holds({ vault, organisationId }: Planning, { id, value }: PlatformSecretTable, secret: Secret): boolean {
  try {
    const opened = vault.open({ table: 'platform_secrets', organisationId, rowId: id }, value);
    return new Secret(opened).equals(secret);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    return false;
  }
}
