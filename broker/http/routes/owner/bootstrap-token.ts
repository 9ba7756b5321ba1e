import { z } from 'zod';
import { makeBootstrapToken } from '../../../admin/agents/make-bootstrap-token.ts';
import { AgentId } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/**
 * POST /owner/agents/{id}/bootstrap-token: revokes earlier tokens of the agent. Its key stays valid until another is bound; a generated key that was
 * not collected yet is destroyed.
 */
export const bootstrapToken = route({
  method: 'POST',
  path: '/owner/agents/{id}/bootstrap-token',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.agents.bootstrap_token',
  summary: 'A token with which an agent brings its own key, once, within a day.',
  params: { id: AgentId },
  body: z.strictObject({
    rotate: z
      .boolean()
      .optional()
      .describe(
        '`true`: for an agent that has a key, which binding replaces, and its children end then. Without it such an agent gets no token',
      ),
  }),
  bodyOptional: true,
  answers: {
    200: {
      description: 'The token, which nobody can show again.',
      schema: z.object({
        agent_id: z.string(),
        bootstrap_token: z.string(),
        expires_at: z.iso.datetime(),
        bind_url: z.url().describe('where it is exchanged'),
      }),
    },
  },
  errors: ['invalid_request', 'not_found', 'conflict', 'agent_has_key', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const command = { agentId: params.id, rotates: body.rotate === true };
    const { agent, token, expiresAt } = await makeBootstrapToken(services, changingOwner(context), command);
    return json(200, {
      agent_id: agent.agent_id,
      bootstrap_token: token.reveal(),
      expires_at: new Date(expiresAt).toISOString(),
      bind_url: `${services.broker.baseUrl}/v1/agents/bind`,
    });
  },
});
