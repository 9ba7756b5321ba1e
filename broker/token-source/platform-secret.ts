/** What a platform's manifest names in its `auth` and does not hold: stored sealed, by name. */
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { listPlatformSecrets } from '../store/platform-secrets.ts';

/** Names of a platform's secrets in its `auth`. */
export const PLATFORM_SECRETS = ['client_id', 'client_secret', 'private_key'] as const;
export type PlatformSecretName = (typeof PLATFORM_SECRETS)[number];

/** Finds one by its name; undefined: it is not stored. */
export type FindPlatformSecret = (name: PlatformSecretName) => Secret | undefined;

/** Reads those of a platform. The returned function @throws SealError when the stored secret was modified */
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
