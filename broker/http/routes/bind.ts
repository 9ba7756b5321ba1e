/** An agent brings its own key (specification, Registration and binding). The private half never comes here. */
import { z } from 'zod';
import { bindByBootstrap, findBootstrap } from '../../admin/bind.ts';
import { bindByInvite, findOpenInvite, newIds } from '../../admin/invites.ts';
import { AgentRefused } from '../../admin/refused.ts';
import { recordChange } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { type AgentPublicKey, parsePublicKey } from '../../crypto/public-key.ts';
import { AGENT_STATUSES } from '../../policy/facts.ts';
import type { AgentTable } from '../../store/schema.ts';
import { Refusal } from '../errors.ts';
import { json, type Reply } from '../reply.ts';
import { route } from '../route.ts';

const LIMIT = { name: 'bind', perMinute: 30, per: 'address' } as const;
const MAX_BODY_BYTES = 64 * 1024;

const Pem = z
  .string()
  .max(16 * 1024)
  .describe('RSA, 2048 to 4096 bits, as SubjectPublicKeyInfo in PEM form');

const Bound = z.object({
  agent_id: z.string(),
  owner_id: z.guid().describe('for the claim owner_id of agent tokens'),
  status: z.enum(AGENT_STATUSES),
  proxy_url: z.url().describe('where the agent sends its calls'),
});

const ERRORS = ['invalid_request', 'token_used', 'rate_limited', 'audit_unavailable'] as const;

/** @throws Refusal invalid_request, in words that say how to make a key that is taken */
function readKey(pem: string): AgentPublicKey {
  const parsed = parsePublicKey(pem);
  if (!parsed.ok) throw new Refusal('invalid_request', `public_key_pem: ${parsed.error}`);
  return parsed;
}

/** Binds, with refusals as they are answered. */
async function answered({ baseUrl }: Broker, bind: () => Promise<AgentTable>): Promise<Reply> {
  try {
    const { agent_id, owner_id, status } = await bind();
    return json(200, { agent_id, owner_id, status, proxy_url: baseUrl });
  } catch (error) {
    if (!(error instanceof AgentRefused)) throw error;
    throw new Refusal(error.code === 'gone' ? 'token_used' : error.code, error.message);
  }
}

/** POST /v1/agents/bind */
export const bindAgent = route({
  method: 'POST',
  path: '/v1/agents/bind',
  auth: 'none',
  limit: LIMIT,
  capability: 'agents.bind',
  summary: 'Gives an agent its key, with a bootstrap token; a key that it had stops at once.',
  body: z.strictObject({ bootstrap_token: z.string().max(128), public_key_pem: Pem }),
  secretBody: true,
  maxBodyBytes: MAX_BODY_BYTES,
  answers: { 200: { description: 'The agent, which can sign with its key from now on.', schema: Bound } },
  errors: ERRORS,
  handle: async ({ services, body, correlationId }) => {
    const { broker } = services;
    const key = readKey(body.public_key_pem);
    return await answered(broker, async () => {
      const bootstrap = await findBootstrap(broker.store.db, body.bootstrap_token, broker.clock());
      const { agent } = bootstrap;
      const by = { id: agent.agent_id, organisation_id: agent.organisation_id };
      return await recordChange(
        services,
        { owner: by, how: 'token', correlationId },
        { reason: 'agent_bound', agent },
        (db, note) => bindByBootstrap(db, bootstrap, key, broker.clock(), note),
      );
    });
  },
});

/** POST /v1/invites/bind */
export const bindInvite = route({
  method: 'POST',
  path: '/v1/invites/bind',
  auth: 'none',
  limit: LIMIT,
  capability: 'invites.bind',
  summary: 'Makes the agent of an invite, with its key.',
  body: z.strictObject({ bind_secret: z.string().max(128), public_key_pem: Pem }),
  secretBody: true,
  maxBodyBytes: MAX_BODY_BYTES,
  answers: { 200: { description: 'The agent, which can sign with its key from now on.', schema: Bound } },
  errors: [...ERRORS, 'conflict'],
  handle: async ({ services, body, correlationId }) => {
    const { broker } = services;
    const key = readKey(body.public_key_pem);
    return await answered(broker, async () => {
      const invite = await findOpenInvite(broker.store.db, body.bind_secret, broker.clock());
      const ids = newIds();
      const by = { id: ids.agent_id, organisation_id: invite.organisation_id };
      return await recordChange(
        services,
        { owner: by, how: 'token', correlationId },
        { reason: 'agent_invited', agent: ids },
        (db, note) => bindByInvite(db, invite, ids, key, broker.clock(), note),
      );
    });
  },
});
