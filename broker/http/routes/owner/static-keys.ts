/** Static keys: bearers of an agent for one connection, for clients that cannot sign. */
import { z } from 'zod';
import {
  issueStaticKey,
  type ReadStaticKey,
  readStaticKeys,
  revokeStaticKey,
  STATIC_KEY_LIFETIME,
} from '../../../admin/agents/static-keys.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { clientUrlOf } from '../../../proxy/raw-target.ts';
import { text } from '../../../wire/action.ts';
import { AgentId } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const StaticKey = z
  .object({
    id: z.guid().describe('names the key in audit rows and receipts; it is no secret'),
    label: z.string(),
    status: z.enum(['live', 'ended', 'expired']),
    connection: z.object({
      id: z.guid(),
      label: z.string().nullable().describe('null: the connection was removed'),
    }),
    owner_id: z.guid().describe('who issued it'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable().describe('accurate to some minutes; null: it was never used'),
    ended_at: z.iso.datetime().nullable(),
    ended_because: z
      .enum(['owner', 'agent', 'connection'])
      .nullable()
      .describe('owner: it was revoked; agent, connection: these were revoked or removed'),
  })
  .meta({ id: 'StaticKey' });

const IssuedStaticKey = StaticKey.extend({
  key: z.string().describe('the secret (`abk_…`), which nobody can show again'),
  url: z.url().describe('base URL for the client, in place of the platform’s'),
}).meta({ id: 'IssuedStaticKey' });

const shown = (key: ReadStaticKey): z.output<typeof StaticKey> => ({
  id: key.id,
  label: key.label,
  status: key.status,
  connection: { id: key.connection_id, label: key.connection_label },
  owner_id: key.owner_id,
  created_at: new Date(key.created_at).toISOString(),
  expires_at: new Date(key.expires_at).toISOString(),
  last_used_at: instant(key.last_used_at),
  ended_at: instant(key.ended_at),
  ended_because: key.ended_because,
});

/** GET /owner/agents/{id}/static-keys: newest first; revoked and expired ones are listed for 90 days. */
export const ownerStaticKeys = route({
  method: 'GET',
  path: '/owner/agents/{id}/static-keys',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.static_keys.list',
  summary: 'The static keys of an agent, newest first, without their secrets.',
  params: { id: AgentId },
  answers: { 200: { description: 'The keys.', schema: z.object({ static_keys: z.array(StaticKey) }) } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) =>
    json(200, { static_keys: (await readStaticKeys(broker, who.organisationId, params.id)).map(shown) }),
});

/** POST /owner/agents/{id}/static-keys */
export const issueOwnerStaticKey = route({
  method: 'POST',
  path: '/owner/agents/{id}/static-keys',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.static_keys.issue',
  summary:
    'Issues a static key of an agent for one connection, valid under /proxy, for a client that cannot sign tokens.',
  description:
    'Weaker than a signature for each request: anyone who reads the key can act as the agent on this connection until it expires. It is accepted only below `/proxy/<its connection>/`.',
  params: { id: AgentId },
  body: z.strictObject({
    label: text(100).min(1).describe('what it is called, such as the client that holds it'),
    connection: text(64).min(1).describe('label or id of the connection that it is good for'),
    expires_in_seconds: z
      .int()
      .min(STATIC_KEY_LIFETIME.least)
      .max(STATIC_KEY_LIFETIME.most)
      .default(STATIC_KEY_LIFETIME.default)
      .describe('90 days at most; 30 when left out'),
  }),
  answers: { 200: { description: 'The key.', schema: IssuedStaticKey } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const { label, connection, expires_in_seconds: lifetimeSeconds } = body;
    const command = { agentId: params.id, label, connection, lifetimeSeconds };
    const { key, secret } = await issueStaticKey(services, changingOwner(context), command);
    const url = clientUrlOf(services.broker.proxyUrl, key.connection_label ?? key.connection_id);
    return json(200, { ...shown(key), key: secret.reveal(), url });
  },
});

/** DELETE /owner/agents/{id}/static-keys/{key}: refused from the next request, on every replica. */
export const revokeOwnerStaticKey = route({
  method: 'DELETE',
  path: '/owner/agents/{id}/static-keys/{key}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.static_keys.revoke',
  summary: 'Revokes a static key.',
  params: { id: AgentId, key: z.guid().describe('the id of the key') },
  answers: { 200: { description: 'It has ended.', schema: StaticKey } },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params } = context;
    const command = { agentId: params.id, id: storedUuid(params.key) };
    return json(200, shown(await revokeStaticKey(services, changingOwner(context), command)));
  },
});
