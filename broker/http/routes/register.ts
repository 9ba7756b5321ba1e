/** Registration, for agents (specification, Registration and binding). Its token is the only credential. */

import { z } from 'zod';
import { mcpConfig } from '../../admin/mcp-config.ts';
import { loadRegistrationByToken } from '../../admin/registrations/read-registration.ts';
import { openRegistration, REGISTRATION_MS } from '../../admin/registrations/registration.ts';
import { claimKey as claim } from '../../admin/registrations/registration-key.ts';
import { statusAt } from '../../audit/approval-state.ts';
import { Refusal } from '../errors.ts';
import { PRIVATE, REGISTRATION_STATUSES, Registering, Token } from '../registration-request.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

/** POST /v1/register: the answer does not reveal whether the owner exists. */
export const register = route({
  method: 'POST',
  path: '/v1/register',
  auth: 'none',
  limit: { name: 'register', perMinute: 10, per: 'site' },
  capability: 'registrations.create',
  summary: 'Asks an owner to let an agent in. The broker makes its key pair when the owner does.',
  body: Registering,
  answers: {
    202: {
      description: 'The registration waits for the owner with this id, if there is one.',
      schema: z.object({
        registration_token: z.string().describe('for poll_url, the stream and the key; shown once'),
        poll_url: z.string(),
        status: z.literal('pending'),
        client_id: z.string().describe('the id of the agent that the approval makes; collecting its key activates it'),
        scope: z.string().describe('the requested scopes, separated by spaces'),
        expires_in: z.int().describe('seconds until it can no longer be decided'),
      }),
    },
  },
  errors: ['invalid_request', 'rate_limited', 'too_many_open_requests'],
  handle: async ({ services: { broker, changes }, body, source }) => {
    const registered = await openRegistration(broker, changes, {
      ownerId: body.owner_id,
      name: body.agent_name,
      description: body.agent_description ?? null,
      scopes: body.requested_scopes,
      source,
    });
    if (registered.kind === 'too_many')
      throw new Refusal(
        'too_many_open_requests',
        registered.whose === 'network'
          ? `${registered.limit} registrations from your address wait at this owner already, or were rejected there within a day. Wait for a decision, or for Retry-After seconds.`
          : `${registered.limit} registrations wait at this owner already. Wait until some are decided or expired, or have the owner invite the agent.`,
        { headers: { 'Retry-After': String(Math.max(1, Math.ceil(registered.retryAfterMs / 1000))) } },
      );
    const token = registered.token.reveal();
    const scopes = new Set(body.requested_scopes.flatMap((one) => one.scopes));
    return json(202, {
      registration_token: token,
      poll_url: `/v1/register/status/${token}`,
      status: 'pending',
      client_id: registered.agentId,
      scope: [...scopes].join(' '),
      expires_in: REGISTRATION_MS / 1000,
    });
  },
});

const LIMIT = { name: 'registration-token', perMinute: 60, per: 'address' } as const;

/** GET /v1/register/status/{token} */
export const registrationStatus = route({
  method: 'GET',
  path: '/v1/register/status/{token}',
  auth: 'none',
  limit: LIMIT,
  capability: 'registrations.read',
  summary: 'What became of a registration.',
  params: { token: Token },
  answers: {
    200: {
      description: 'Its status; once it is approved, the agent and the configuration for an MCP client.',
      schema: z.object({
        status: z.enum(REGISTRATION_STATUSES),
        agent_id: z.string().optional().describe('once it is approved'),
        mcp_config: z
          .record(z.string(), z.unknown())
          .optional()
          .describe('once it is approved: for an MCP client; without the private key'),
      }),
    },
  },
  errors: ['not_found', 'rate_limited'],
  handle: async ({ services: { broker }, params }) => {
    const found = await loadRegistrationByToken(broker, params.token);
    const status = statusAt(found, broker.clock());
    const { agent_id: agentId, owner_id: ownerId } = found;
    const agent = status === 'approved' && { agent_id: agentId, mcp_config: mcpConfig(broker, { agentId, ownerId }) };
    return json(200, { status, ...agent }, PRIVATE);
  },
});

/**
 * GET /v1/register/claim-key/{token}: answers one request, ever. The stored key is destroyed, and the agent activated, before the answer is sent: if
 * the answer is lost, an owner has to give the agent another way to a key.
 */
export const claimKey = route({
  method: 'GET',
  path: '/v1/register/claim-key/{token}',
  auth: 'none',
  limit: LIMIT,
  capability: 'registrations.claim_key',
  refusesHead: true,
  summary: 'Hands out the private key of an approved registration, once, and activates its agent.',
  params: { token: Token },
  answers: {
    200: {
      description: 'The private key, which the broker has deleted.',
      schema: z.object({ private_key: z.string().describe('PKCS#8 PEM') }),
    },
  },
  errors: [
    'not_found',
    'registration_pending',
    'key_gone',
    'rate_limited',
    'method_not_allowed',
    'audit_unavailable',
    'credential_unreadable',
  ],
  handle: async ({ services, params, request, correlationId }) => {
    // An answer to HEAD has no body: the key would be destroyed without having been delivered.
    if (request.method === 'HEAD')
      throw new Refusal('method_not_allowed', 'Method not allowed. Allowed: GET.', { headers: { Allow: 'GET' } });
    const pem = await claim(services, params.token, correlationId);
    return json(200, { private_key: pem.reveal() }, PRIVATE);
  },
});
