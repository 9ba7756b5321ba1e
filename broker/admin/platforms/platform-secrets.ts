/** Stores client ids, client secrets and private keys of platforms for all entry points: sealed and write-only. */

import { uuidv4 } from '../../crypto/ids.ts';
import { SealError } from '../../crypto/seal.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { Instant } from '../../policy/facts.ts';
import { listConnections, storeResealed } from '../../store/connections.ts';
import { deleteNamedPlatformSecret, listPlatformSecrets, putPlatformSecret } from '../../store/platform-secrets.ts';
import type { Db } from '../../store/store.ts';
import { deleteUpstreamTokens } from '../../store/upstream-tokens.ts';
import type { PlatformSecretName } from '../../token-source/platform-secret.ts';
import { APP_KEY, readRsaKey } from '../../token-source/rsa-key.ts';
import type { Vault } from '../../vault.ts';
import type { FormerConnection } from '../agents/end-tokens.ts';

type Sealing = Pick<Vault, 'seal' | 'open'>;

/** Returns why a value is not accepted, as a phrase that follows its name; undefined when it is. */
export function whyNotPlatformSecret(name: PlatformSecretName, secret: Secret): string | undefined {
  if (secret.reveal() === '') return 'is empty';
  const key = name === 'private_key' ? readRsaKey(secret.reveal(), APP_KEY) : undefined;
  return key?.ok === false ? key.problem : undefined;
}

/** A change of a platform's secrets: undefined removes one that is no longer used. `manifest`: as it was before. */
export type PlatformSecretChange = {
  organisationId: string;
  platformId: string;
  manifest: Manifest | undefined;
  secrets: readonly (readonly [PlatformSecretName, Secret | undefined])[];
};

/**
 * Stores the secrets, each replacing the one of the same name. Returns the connections whose tokens were obtained with another key of an App; they
 * have to be ended after the transaction (`endTokens`).
 */
export async function writePlatformSecrets(
  db: Db,
  vault: Sealing,
  change: PlatformSecretChange,
  now: Instant,
): Promise<FormerConnection[]> {
  const { organisationId, platformId, secrets } = change;
  const before = await listPlatformSecrets(db, organisationId, platformId);
  for (const [name, secret] of secrets) {
    if (!secret) {
      await deleteNamedPlatformSecret(db, { organisationId, platformId, name });
      continue;
    }
    const id = uuidv4();
    const value = vault.seal({ table: 'platform_secrets', organisationId, rowId: id }, secret.reveal());
    await putPlatformSecret(db, {
      organisation_id: organisationId,
      id,
      platform_id: platformId,
      name,
      value,
      created_at: now,
    });
  }
  return before.some(({ name }) => name === 'private_key') ? await endAppTokens(db, vault, change) : [];
}

/**
 * Collects tokens that were obtained with another key of the App, to be revoked. Replicas cache tokens by the sealed credential (see
 * `Installation.given`), so the credential is sealed again to invalidate these caches.
 */
async function endAppTokens(
  db: Db,
  vault: Sealing,
  { organisationId, platformId, manifest }: PlatformSecretChange,
): Promise<FormerConnection[]> {
  const former: FormerConnection[] = [];
  for (const connection of await listConnections(db, organisationId)) {
    const { id, credential } = connection;
    if (connection.platform_id !== platformId || credential === null || !manifest) continue;
    const appTokens = await deleteUpstreamTokens(db, { organisationId, connectionId: id });
    if (appTokens.length === 0) continue;
    const place = { table: 'connections', organisationId, rowId: id } as const;
    try {
      const resealed = vault.seal(place, vault.open(place, credential).toString('utf8'));
      await storeResealed(db, { organisationId, id }, resealed);
    } catch (error) {
      // Nobody can use such a credential.
      if (!(error instanceof SealError)) throw error;
    }
    former.push({ connection, manifest, removed: false, appTokens });
  }
  return former;
}
