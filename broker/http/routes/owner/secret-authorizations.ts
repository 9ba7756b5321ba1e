/** Secret authorisations: each allows one secret to be sent, for one agent and one platform. */
import { z } from 'zod';
import {
  authorizeSecret,
  listSecretAuthorizations,
  type ReadSecretAuthorization,
  removeSecretAuthorization,
} from '../../../admin/connections/secret-authorization.ts';
import { ConnectionName } from '../../../config-file/schema.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { text } from '../../../wire/action.ts';
import { changingOwner } from '../../owner-change.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';
import { SECRET_KEYS_PATH } from '../bind-secret.ts';

const Authorization = z
  .object({
    id: z.guid(),
    status: z.enum(['open', 'used', 'expired']),
    agent: z.guid().describe("the agent's uuid"),
    platform: z.string(),
    label: z.string().describe('what the connection is to be called'),
    scopes: z
      .array(z.string())
      .nullable()
      .describe('of the grant that it makes; null: it is for the grant that is there'),
    owner_id: z.guid().describe('who authorised it'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    used_at: z.iso.datetime().nullable(),
    connection_id: z.guid().nullable().describe('the connection that it became'),
  })
  .meta({ id: 'SecretAuthorization' });

const NewAuthorization = Authorization.extend({
  authorization: z.string().describe('to be sealed in with the secret; nobody can show it again'),
  agent_id: z.string(),
  bind_url: z.url().describe('where the sealed secret goes'),
  keys_url: z.url().describe('what it is sealed to'),
}).meta({ id: 'NewSecretAuthorization' });

const shown = (one: ReadSecretAuthorization): z.output<typeof Authorization> => ({
  id: one.id,
  status: one.status,
  agent: one.agent_id,
  platform: one.platform_id,
  label: one.label,
  scopes: one.scopes,
  owner_id: one.owner_id,
  created_at: new Date(one.created_at).toISOString(),
  expires_at: new Date(one.expires_at).toISOString(),
  used_at: instant(one.used_at),
  connection_id: one.connection_id,
});

/** GET /owner/secret-authorizations: newest first; used and expired ones are listed for 30 days. */
export const ownerSecretAuthorizations = route({
  method: 'GET',
  path: '/owner/secret-authorizations',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.secret_authorizations.list',
  summary: 'The authorisations for sealed secrets, open and used, newest first.',
  answers: {
    200: { description: 'The authorisations.', schema: z.object({ authorizations: z.array(Authorization) }) },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { authorizations: (await listSecretAuthorizations(broker, who.organisationId)).map(shown) }),
});

/** POST /owner/secret-authorizations */
export const authorizeOwnerSecret = route({
  method: 'POST',
  path: '/owner/secret-authorizations',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.secret_authorizations.create',
  summary: 'Authorises one sealed secret, within a day, for one agent and one platform.',
  body: z.strictObject({
    agent: text(64).min(1).describe('its uuid, or its agent id (`agt_…`)'),
    platform: text(64).min(1),
    label: ConnectionName.optional().describe('what the connection is to be called; otherwise <platform>-<agent id>'),
    scopes: z
      .array(text(256).min(1))
      .min(1)
      .max(100)
      .optional()
      .describe('what the agent may do with it, when it has no grant on the platform; otherwise left out'),
  }),
  answers: { 200: { description: 'The authorisation.', schema: NewAuthorization } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const { baseUrl } = services.broker;
    const command = { agentId: body.agent, platformId: body.platform, label: body.label, scopes: body.scopes };
    const { authorization, agentId, token } = await authorizeSecret(services, changingOwner(context), command);
    return json(200, {
      ...shown(authorization),
      authorization: token.reveal(),
      agent_id: agentId,
      bind_url: `${baseUrl}/v1/bind-secret`,
      keys_url: baseUrl + SECRET_KEYS_PATH,
    });
  },
});

/** DELETE /owner/secret-authorizations/{id}: secrets sealed with it are refused from then on. */
export const removeOwnerSecretAuthorization = route({
  method: 'DELETE',
  path: '/owner/secret-authorizations/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.secret_authorizations.remove',
  summary: 'Withdraws an unused authorisation.',
  params: { id: z.guid().describe('the id of the authorisation') },
  answers: { 200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) } },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await removeSecretAuthorization(context.services, changingOwner(context), id);
    return json(200, { id, removed: true });
  },
});
