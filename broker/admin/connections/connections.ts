/** Connects platforms with credentials for owners; credentials are sealed and never shown again. Tokens of a replaced credential are revoked. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import { present } from '../../runtime/present.ts';
import {
  addConnection,
  clearDefaultConnection,
  deleteConnection,
  listAgentsNaming,
  listConnections,
  lockConnection,
  replaceCredential,
} from '../../store/connections.ts';
import type { Db } from '../../store/store.ts';
import { deleteUpstreamTokens } from '../../store/upstream-tokens.ts';
import { endTokens } from '../agents/end-tokens.ts';
import { agentsNamed } from '../agents/find-agent.ts';
import { ChangeRefused } from '../refused.ts';
import { checkCredential, credentialOf } from './connection-credential.ts';
import { loadConnection, loadManifest, type ReadConnection, unknownConnection } from './find-connection.ts';

export type Connecting = Changing & { oauth: OAuthConnections };

export type NewConnection = {
  platformId: string;
  label: string;
  /** Undefined for a platform to which an owner connects through OAuth, or whose manifest names an App's installation. */
  secret: Secret | undefined;
  /** Undefined: it becomes the default if it is the first of its platform. */
  isDefault: boolean | undefined;
};

/** Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function createConnection(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  { platformId, label, secret: given, isDefault }: NewConnection,
): Promise<ReadConnection> {
  const { store, vault, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const manifest = await loadManifest(store.db, organisationId, platformId);
  const secret = given ?? credentialOf(manifest);
  if (secret) checkCredential(manifest, secret);
  else if (manifest.auth.type !== 'oauth2')
    throw new ChangeRefused(
      'invalid_request',
      'secret: is missing; only a platform with auth of type oauth2, or one whose auth names an installation_id, goes without.',
    );
  const id = uuidv4();
  const change = { reason: 'connection_created', platform: platformId, connection: id };
  const connection = await recordInTurn(services, by, change, async (tx, note) => {
    await loadManifest(tx, organisationId, platformId);
    const others = (await listConnections(tx, organisationId)).filter((one) => one.platform_id === platformId);
    const becomesDefault = isDefault ?? others.length === 0;
    if (becomesDefault) await clearDefaultConnection(tx, organisationId, platformId);
    const added = await addConnection(tx, {
      organisation_id: organisationId,
      id,
      platform_id: platformId,
      label,
      is_default: becomesDefault ? 1 : 0,
      status: 'active',
      credential: secret ? vault.seal({ table: 'connections', organisationId, rowId: id }, secret.reveal()) : null,
      secret_reference: null,
      upstream_scopes: null,
      revision: 1,
      created_at: clock(),
    });
    if (!added)
      throw new ChangeRefused(
        'conflict',
        `There is a connection "${label}" already: choose another label, or replace its secret.`,
      );
    note({ label, default: becomesDefault, revision: 1 });
    return added;
  });
  return { connection, manifest };
}

/**
 * Replaces the credential and clears the mark that the platform refused the former one. Throws ChangeRefused, or AuditUnavailable: then nothing is
 * changed.
 */
export async function replaceSecret(
  services: Connecting & Uses<'vault' | 'outbound'>,
  by: ChangingOwner,
  { id, secret }: { id: string; secret: Secret },
): Promise<ReadConnection> {
  const { store, vault } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const { connection, manifest } = await loadConnection(store.db, organisationId, id);
  checkCredential(manifest, secret);
  const sealed = vault.seal({ table: 'connections', organisationId, rowId: id }, secret.reveal());
  const change = { reason: 'connection_secret_replaced', platform: connection.platform_id, connection: id };
  const { before, after, appTokens } = await recordInTurn(services, by, change, async (tx, note) => {
    const before = await connectionIn(tx, organisationId, id);
    const appTokens = await deleteUpstreamTokens(tx, { organisationId, connectionId: id });
    const after = present(
      await replaceCredential(tx, { organisationId, id }, sealed, services.broker.clock()),
      'connection',
    );
    note({ label: after.label, revision: after.revision });
    return { before, after, appTokens };
  });
  await endTokens(services, { connection: before, manifest, removed: false, appTokens });
  return { connection: after, manifest };
}

/** Removes a connection, unless a grant names it. Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function removeConnection(
  services: Connecting & Uses<'vault' | 'outbound'>,
  by: ChangingOwner,
  id: string,
): Promise<void> {
  const { organisation_id: organisationId } = by.owner;
  const { connection, manifest } = await loadConnection(services.broker.store.db, organisationId, id);
  const change = { reason: 'connection_removed', platform: connection.platform_id, connection: id };
  const removed = await recordInTurn(services, by, change, async (tx, note) => {
    const before = await connectionIn(tx, organisationId, id);
    await refuseNamed(tx, organisationId, id);
    const now = services.broker.clock();
    const { people, appTokens, staticKeys } = await deleteConnection(tx, organisationId, id, now);
    note({
      label: before.label,
      ...(people.length > 0 && { people: people.length }),
      ...(staticKeys > 0 && { static_keys: staticKeys }),
    });
    return { before, people, appTokens };
  });
  const { before, people, appTokens } = removed;
  await endTokens(services, { connection: before, manifest, removed: { people }, appTokens });
}

/** Loads and locks a connection. Throws ChangeRefused when there is none. */
async function connectionIn(tx: Db, organisationId: string, id: string) {
  const found = await lockConnection(tx, organisationId, id);
  if (!found) throw unknownConnection();
  return found;
}

async function refuseNamed(tx: Db, organisationId: string, id: string): Promise<void> {
  const agents = await listAgentsNaming(tx, organisationId, id);
  if (agents.length === 0) return;
  throw new ChangeRefused('conflict', `Grants of ${agentsNamed(agents)} name this connection. Change them first.`);
}
