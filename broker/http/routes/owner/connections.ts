/** Connections: credentials go in here and never come out again. */
import { z } from 'zod';
import { testConnection } from '../../../admin/connection-test.ts';
import { ConnectionName } from '../../../config-file/schema.ts';
import { uuidv4 } from '../../../crypto/ids.ts';
import { forgetRegistration } from '../../../oauth-client/registration.ts';
import {
  addConnection,
  clearDefaultConnection,
  deleteConnection,
  findConnection,
  listAgentsNaming,
  listConnections,
  replaceCredential,
} from '../../../store/connections.ts';
import { lockOrganisation } from '../../../store/governance.ts';
import type { NewConnection } from '../../../store/schema.ts';
import { text } from '../../../wire/action.ts';
import { Refusal } from '../../errors.ts';
import {
  Connection,
  Credential,
  checkSecret,
  connectionShown,
  connectionsShown,
  loadConnection,
  loadManifest,
  unknownConnection,
} from '../../owned-connection.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/connections */
export const ownerConnections = route({
  method: 'GET',
  path: '/owner/connections',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.connections.list',
  summary: "The organisation's connections; never a secret.",
  answers: {
    200: { description: 'All of them, oldest first.', schema: z.object({ connections: z.array(Connection) }) },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { connections: await connectionsShown(broker.store.db, who.organisationId, broker.clock()) }),
});

/** POST /owner/connections */
export const connect = route({
  method: 'POST',
  path: '/owner/connections',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.connections.create',
  summary:
    'Connects a platform with a credential, which is sealed and never shown again; or, for OAuth, without one yet.',
  body: z.strictObject({
    platform: text(64).describe('the platform that the secret is for'),
    label: ConnectionName,
    secret: Credential.optional().describe('left out for a platform to which an owner connects through OAuth'),
    default: z
      .boolean()
      .optional()
      .describe('whether grants that name no connection use this one; the first connection of a platform does'),
  }),
  secretBody: true,
  answers: { 201: { description: 'The connection.', schema: Connection } },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { organisationId } = who;
    const { vault, clock } = services.broker;
    const { platform, label, secret } = body;
    const manifest = await loadManifest(services.broker.store.db, organisationId, platform);
    if (secret) checkSecret(manifest, secret);
    else if (manifest.auth.type !== 'oauth2')
      throw new Refusal(
        'invalid_request',
        'secret: is missing; only a platform with auth of type oauth2 goes without.',
      );
    const id = uuidv4();
    const change = { reason: 'connection_created', platform, connection: id };
    const made = await ownerChange(context, change, async (db, note) => {
      await lockOrganisation(db, organisationId);
      await loadManifest(db, organisationId, platform);
      const others = (await listConnections(db, organisationId)).filter((one) => one.platform_id === platform);
      const isDefault = body.default ?? others.length === 0;
      if (isDefault) await clearDefaultConnection(db, organisationId, platform);
      const connection: NewConnection = {
        organisation_id: organisationId,
        id,
        platform_id: platform,
        label,
        is_default: isDefault ? 1 : 0,
        status: 'active',
        credential: secret ? vault.seal({ table: 'connections', organisationId, rowId: id }, secret.reveal()) : null,
        secret_reference: null,
        upstream_scopes: null,
        revision: 1,
        created_at: clock(),
      };
      const added = await addConnection(db, connection);
      if (!added)
        throw new Refusal(
          'conflict',
          `There is a connection "${label}" already: choose another label, or replace its secret.`,
        );
      note({ label, default: isDefault, revision: 1 });
      return added;
    });
    return json(201, connectionShown(made, manifest, clock()));
  },
});

const params = { id: z.guid().describe('the id of the connection') };

/** POST /owner/connections/{id}/secret */
export const replaceSecret = route({
  method: 'POST',
  path: '/owner/connections/{id}/secret',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.connections.replace_secret',
  summary: 'Gives a connection another credential; what the platform refused is forgotten.',
  params,
  body: z.strictObject({ secret: Credential }),
  secretBody: true,
  answers: { 200: { description: 'The connection as it is now.', schema: Connection } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { organisationId } = who;
    const { broker } = services;
    const connection = await loadConnection(broker.store.db, organisationId, context.params.id);
    const { id, platform_id: platform } = connection;
    const manifest = await loadManifest(broker.store.db, organisationId, platform);
    checkSecret(manifest, body.secret);
    const sealed = broker.vault.seal({ table: 'connections', organisationId, rowId: id }, body.secret.reveal());
    const change = { reason: 'connection_secret_replaced', platform, connection: id };
    const replaced = await ownerChange(context, change, async (db, note) => {
      const changed = await replaceCredential(db, { organisationId, id }, sealed);
      if (!changed) throw unknownConnection();
      note({ label: changed.label, revision: changed.revision });
      return changed;
    });
    // What a person consented to before is used by nobody any more.
    await services.oauth.revoke(connection, manifest);
    return json(200, connectionShown(replaced, manifest, broker.clock()));
  },
});

/** DELETE /owner/connections/{id} */
export const removeConnection = route({
  method: 'DELETE',
  path: '/owner/connections/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.connections.remove',
  summary: 'Removes a connection with its credential, unless a grant names it.',
  params,
  answers: { 200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) } },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { organisationId } = context.who;
    const { db } = context.services.broker.store;
    const connection = await loadConnection(db, organisationId, context.params.id);
    const { id, label, platform_id: platform } = connection;
    const manifest = await loadManifest(db, organisationId, platform);
    const change = { reason: 'connection_removed', platform, connection: id };
    await ownerChange(context, change, async (db, note) => {
      await lockOrganisation(db, organisationId);
      if (!(await findConnection(db, organisationId, id))) throw unknownConnection();
      const agents = await listAgentsNaming(db, organisationId, id);
      if (agents.length > 0) {
        const names = agents.slice(0, 12).map(({ name, agent_id }) => `${name} (${agent_id})`);
        const more = agents.length > 12 ? ` and ${agents.length - 12} more` : '';
        throw new Refusal('conflict', `Grants of ${names.join(', ')}${more} name this connection. Change them first.`);
      }
      await deleteConnection(db, organisationId, id);
      note({ label });
    });
    // It is gone here whatever the server says; there it ends with its tokens.
    await context.services.oauth.revoke(connection, manifest);
    await forgetRegistration(db, { organisationId, platformId: platform, connectionId: id });
    return json(200, { id, removed: true });
  },
});

/** POST /owner/connections/{id}/test: one GET of the platform's base address, on record because it used the credential. */
export const tryConnection = route({
  method: 'POST',
  path: '/owner/connections/{id}/test',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'connection-tests', perMinute: 20, per: 'address' },
  capability: 'owner.connections.test',
  summary: 'Asks the platform, harmlessly, whether it can be reached and takes the credential.',
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: {
      description: 'What came of it, in our words: nothing of what the platform says is told.',
      schema: z.object({ ok: z.boolean(), upstream_status: z.int().nullable(), detail: z.string() }),
    },
  },
  errors: ['not_found', 'rate_limited', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who } = context;
    const { db } = services.broker.store;
    const connection = await loadConnection(db, who.organisationId, context.params.id);
    const platform = connection.platform_id;
    const manifest = await loadManifest(db, who.organisationId, platform);
    const { ok, upstreamStatus, detail, sent } = await testConnection(services, connection, manifest);
    const change = { reason: 'connection_tested', platform, connection: connection.id };
    if (sent)
      await ownerChange(context, change, async (_db, note) => {
        note({ label: connection.label, ok, upstream_status: upstreamStatus });
      });
    return json(200, { ok, upstream_status: upstreamStatus, detail });
  },
});
