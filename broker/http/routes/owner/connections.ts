/** Connections. Their credentials are write-only. */
import { z } from 'zod';
import { tryConnection as test } from '../../../admin/connections/connection-test.ts';
import { changeConnectionTimeouts as change } from '../../../admin/connections/connection-timeouts.ts';
import { readUses } from '../../../admin/connections/connection-use.ts';
import {
  createConnection,
  removeConnection as remove,
  replaceSecret as replace,
} from '../../../admin/connections/connections.ts';
import { readConnections } from '../../../admin/connections/find-connection.ts';
import { ConnectionName, IdleSeconds, WaitSeconds } from '../../../config-file/schema.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { text } from '../../../wire/action.ts';
import { Connection, Credential, connectionShown, ListedConnection, listedConnection } from '../../owned/connection.ts';
import { changingOwner } from '../../owner-change.ts';
import { instant, json } from '../../reply.ts';
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
    200: { description: 'All of them, oldest first.', schema: z.object({ connections: z.array(ListedConnection) }) },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const connections = await readConnections(broker.store.db, who.organisationId);
    const uses = await readUses(broker.store.db, who.organisationId);
    return json(200, {
      connections: connections.map((one) => listedConnection(one, uses.get(one.connection.id), broker)),
    });
  },
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
    secret: Credential.optional().describe(
      'left out for a platform to which an owner connects through OAuth, and where the platform names the installation of an App',
    ),
    default: z
      .boolean()
      .optional()
      .describe('whether grants that name no connection use this one; the first connection of a platform does'),
  }),
  secretBody: true,
  answers: { 201: { description: 'The connection.', schema: Connection } },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const { platform: platformId, label, secret, default: isDefault } = body;
    const command = { platformId, label, secret, isDefault };
    const { connection, manifest } = await createConnection(services, changingOwner(context), command);
    return json(201, connectionShown(connection, manifest, services.broker));
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
  summary: 'Replaces the credential of a connection, and clears a refusal of the previous one.',
  params,
  body: z.strictObject({ secret: Credential }),
  secretBody: true,
  answers: { 200: { description: 'The connection as it is now.', schema: Connection } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const command = { id: storedUuid(params.id), secret: body.secret };
    const { connection, manifest } = await replace(services, changingOwner(context), command);
    return json(200, connectionShown(connection, manifest, services.broker));
  },
});

/** POST /owner/connections/{id}/settings */
export const changeConnection = route({
  method: 'POST',
  path: '/owner/connections/{id}/settings',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.connections.settings',
  summary: 'Changes how long answers of a connection may be silent, and how long its requests wait for a person.',
  params,
  body: z
    .strictObject({
      idle_seconds: IdleSeconds.nullable()
        .optional()
        .describe('null: as the platform says, or as any answer may be; left out, it stays'),
      wait_seconds: WaitSeconds.nullable().optional().describe('null: 25 seconds; left out, it stays'),
    })
    .refine((body) => Object.keys(body).length > 0, 'names nothing to change'),
  answers: { 200: { description: 'The connection as it is now.', schema: Connection } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const inMs = (seconds: number | null | undefined) => (seconds == null ? seconds : seconds * 1000);
    const command = { id: storedUuid(params.id), idleMs: inMs(body.idle_seconds), waitMs: inMs(body.wait_seconds) };
    const { connection, manifest } = await change(services, changingOwner(context), command);
    return json(200, connectionShown(connection, manifest, services.broker));
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
    const id = storedUuid(context.params.id);
    await remove(context.services, changingOwner(context), id);
    return json(200, { id, removed: true });
  },
});

/** POST /owner/connections/{id}/test: sends one GET to the platform's base address, recorded in the audit because it uses the credential. */
export const tryConnection = route({
  method: 'POST',
  path: '/owner/connections/{id}/test',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'connection-tests', perMinute: 20, per: 'address' },
  capability: 'owner.connections.test',
  summary: 'Tests with one harmless request whether the platform is reachable and accepts the credential.',
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: {
      description:
        'What came of it, in our words; of what the platform says, whose the credential is, until when, and what it may do.',
      schema: z.object({
        ok: z.boolean(),
        upstream_status: z.int().nullable(),
        detail: z.string(),
        account: z.string().nullable().describe('whose the credential is; null: the platform does not say'),
        expires_at: z.iso.datetime().nullable().describe('when the credential ends; null: the platform does not say'),
        granted_scopes: z
          .array(z.string())
          .nullable()
          .describe('scopes that the platform says the credential has; null: it does not say'),
        lacking: z
          .array(z.object({ scope: z.string(), needs: z.array(z.string()) }))
          .describe(
            'scopes of the manifest that it is not enough for, with the scopes of the platform of which one is needed',
          ),
      }),
    },
  },
  errors: ['not_found', 'rate_limited', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    const tested = await test(context.services, changingOwner(context), id);
    return json(200, {
      ok: tested.ok,
      upstream_status: tested.upstreamStatus,
      detail: tested.detail,
      account: tested.account,
      expires_at: instant(tested.expiresAt),
      granted_scopes: tested.grantedScopes,
      lacking: tested.lacking,
    });
  },
});
