/** Binds an agent's own public key (specification, Registration and binding). The private half never leaves the agent. */
import { z } from 'zod';
import { bindAgent as bind } from '../../admin/agents/bind.ts';
import { bindInvite as claim } from '../../admin/agents/invites.ts';
import type { Broker } from '../../broker.ts';
import { type AgentPublicKey, MAX_PEM, parsePublicKey } from '../../crypto/public-key.ts';
import { AGENT_STATUSES } from '../../policy/facts.ts';
import { Refusal } from '../errors.ts';
import { json, type Reply } from '../reply.ts';
import { route } from '../route.ts';

const LIMIT = { name: 'bind', perMinute: 30, per: 'address' } as const;
const MAX_BODY_BYTES = 64 * 1024;

const Pem = z.string().max(MAX_PEM).describe('RSA, 2048 to 4096 bits, as SubjectPublicKeyInfo in PEM form');

const Bound = z.object({
  agent_id: z.string(),
  owner_id: z.guid().describe('for the claim owner_id of agent tokens'),
  status: z.enum(AGENT_STATUSES),
  proxy_url: z.url().describe('where the agent sends its calls'),
});

const ERRORS = ['invalid_request', 'token_used', 'rate_limited', 'audit_unavailable'] as const;

/** @throws Refusal invalid_request, with a text that says how to make an accepted key */
function readKey(pem: string): AgentPublicKey {
  const parsed = parsePublicKey(pem);
  if (!parsed.ok) throw new Refusal('invalid_request', `public_key_pem: ${parsed.error}`);
  return parsed;
}

const bound = (
  { baseUrl }: Pick<Broker, 'baseUrl'>,
  { agent_id, owner_id, status }: Awaited<ReturnType<typeof bind>>,
): Reply => json(200, { agent_id, owner_id, status, proxy_url: baseUrl });

/** POST /v1/agents/bind */
export const bindAgent = route({
  method: 'POST',
  path: '/v1/agents/bind',
  auth: 'none',
  limit: LIMIT,
  capability: 'agents.bind',
  summary: 'Gives an agent its key, with a bootstrap token; a key that it had stops immediately.',
  body: z.strictObject({ bootstrap_token: z.string().max(128), public_key_pem: Pem }),
  secretBody: true,
  maxBodyBytes: MAX_BODY_BYTES,
  answers: { 200: { description: 'The agent, which can sign with its key from now on.', schema: Bound } },
  errors: ERRORS,
  handle: async ({ services, body, correlationId }) => {
    const key = readKey(body.public_key_pem);
    return bound(services.broker, await bind(services, body.bootstrap_token, key, correlationId));
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
  errors: ERRORS,
  handle: async ({ services, body, correlationId }) => {
    const key = readKey(body.public_key_pem);
    return bound(services.broker, await claim(services, body.bind_secret, key, correlationId));
  },
});
