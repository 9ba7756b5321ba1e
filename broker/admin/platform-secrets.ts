/** Client ids, client secrets and private keys of platforms, as whatever door stores them: sealed, and never told. */
import { uuidv4 } from '../crypto/ids.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { putPlatformSecret } from '../store/platform-secrets.ts';
import type { Db } from '../store/store.ts';
import type { PlatformSecretName } from '../token-source/platform-secret.ts';
import { APP_KEY, readRsaKey } from '../token-source/rsa-key.ts';
import type { Vault } from '../vault.ts';

/** Why a value is not taken, as a phrase that follows its name; undefined when it is. */
export function whyNotPlatformSecret(name: PlatformSecretName, secret: Secret): string | undefined {
  if (secret.reveal() === '') return 'is empty';
  const key = name === 'private_key' ? readRsaKey(secret.reveal(), APP_KEY) : undefined;
  return key?.ok === false ? key.problem : undefined;
}

/** Stores one, in place of the one of its name. */
export async function storePlatformSecret(
  db: Db,
  vault: Pick<Vault, 'seal'>,
  { organisationId, platformId, name }: { organisationId: string; platformId: string; name: PlatformSecretName },
  secret: Secret,
  now: Instant,
): Promise<void> {
  const id = uuidv4();
  await putPlatformSecret(db, {
    organisation_id: organisationId,
    id,
    platform_id: platformId,
    name,
    value: vault.seal({ table: 'platform_secrets', organisationId, rowId: id }, secret.reveal()),
    created_at: now,
  });
}
