import { z } from 'zod';
import { hasKey, takesKey } from '../../../admin/bind.ts';
import { mintBootstrapToken } from '../../../auth/bootstrap-token.ts';
import { findAgent, moveAgent } from '../../../store/agents.ts';
import { endOneTimeTokens, lockOrganisation } from '../../../store/governance.ts';
import { destroyUncollectedKey } from '../../../store/registrations.ts';
import { Refusal } from '../../errors.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { AgentId } from './agents.ts';

/**
 * POST /owner/agents/{id}/bootstrap-token: earlier tokens of the agent end; its key goes on until another is bound, and one that it
 * has not collected yet is destroyed.
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
      .describe('`true`: for an agent that has a key, which binding replaces. Without it such an agent gets no token'),
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
    const { services, who, params, body } = context;
    const rotates = body.rotate === true;
    const { broker } = services;
    const { organisationId } = who;
    const agent = await findAgent(broker.store.db, organisationId, params.id!);
    if (!agent || agent.status === 'deleted') throw new Refusal('not_found', 'The organisation has no such agent.');
    const { token, expiresAt } = await ownerChange(
      context,
      { reason: 'bootstrap_token_made', agent },
      async (db, note) => {
        await lockOrganisation(db, organisationId);
        const now = (await findAgent(db, organisationId, agent.id))!;
        if (!takesKey(now))
          throw new Refusal('conflict', 'This agent takes no key: it is stopped for good, or has none of its own.');
        if (hasKey(now) && !rotates)
          throw new Refusal(
            'agent_has_key',
            'This agent has its key already. Send {"rotate": true} for a token with which it replaces that key.',
          );
        const at = broker.clock();
        // It brings its own: the key that it has not collected is not handed out any more.
        const place = { organisationId, id: agent.id };
        const move = { from: ['pending'], to: 'pending_bind', cause: null, detail: null } as const;
        const waited = await moveAgent(db, place, move, at);
        if (waited) await destroyUncollectedKey(db, place);
        await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: agent.id }, at);
        const minted = await mintBootstrapToken(db, agent, at, { rotates });
        note({
          expires_at: new Date(minted.expiresAt).toISOString(),
          ...(waited && { status: 'pending_bind' }),
          ...(rotates && { rotate: true }),
        });
        return minted;
      },
    );
    return json(200, {
      agent_id: agent.agent_id,
      bootstrap_token: token.reveal(),
      expires_at: new Date(expiresAt).toISOString(),
      bind_url: `${broker.baseUrl}/v1/agents/bind`,
    });
  },
});
