/** Secrets that a platform's manifest refers to in `auth` without containing them: stored sealed, by name. */
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { listPlatformSecrets } from '../store/platform-secrets.ts';

/** Names of a platform's secrets in its `auth`. */
export const PLATFORM_SECRETS = ['client_id', 'client_secret', 'private_key'] as const;
export type PlatformSecretName = (typeof PLATFORM_SECRETS)[number];

/** Finds a secret by its name; undefined when it is not stored. */
export type FindPlatformSecret = (name: PlatformSecretName) => Secret | undefined;

/** Loads a platform's secrets. The returned function @throws SealError when the stored secret was modified */
export async function platformSecrets(
  { store, vault }: Pick<Broker, 'store' | 'vault'>,
  { organisationId, platformId }: { organisationId: string; platformId: string },
): Promise<FindPlatformSecret> {
  const stored = await listPlatformSecrets(store.db, organisationId, platformId);
  return (name) => {
    const found = stored.find((one) => one.name === name);
    if (!found) return undefined;
    const place = { table: 'platform_secrets' as const, organisationId, rowId: found.id };
    return new Secret(vault.open(place, found.value).toString('utf8'));
  };
}
