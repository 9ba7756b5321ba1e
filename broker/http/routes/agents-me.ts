import { didOfAgent } from '../../broker.ts';
import { agentFacts, breakersOf } from '../../facts/facts.ts';
import { haltOf } from '../../policy/halt.ts';
import { AgentIdentity } from '../governed-answers.ts';
import { instant, json } from '../reply.ts';
import { route } from '../route.ts';

/** GET /v1/agents/me (specification, Agent identity). Also answers halted agents, with the reason. */
export const agentsMe = route({
  method: 'GET',
  path: '/v1/agents/me',
  auth: 'agent',
  limit: { name: 'agents-me', perMinute: 30, per: 'agent' },
  capability: 'agents.me',
  summary: 'Who this agent is, and whether it is halted.',
  answers: { 200: { description: 'The identity of the calling agent.', schema: AgentIdentity } },
  errors: ['agent_not_found', 'rate_limited'],
  handle: async ({ services: { broker }, who }) => {
    const { agent } = who;
    const now = broker.clock();
    const halt = haltOf(agentFacts(agent), breakersOf(agent, now), now);
    return json(200, {
      status: 'approved',
      agent_id: agent.agent_id,
      did: didOfAgent(broker, agent.agent_id),
      name: agent.name,
      owner_id: agent.owner_id,
      org_id: agent.organisation_id,
      agent_type: agent.agent_type,
      agent_status: agent.status,
      parent_agent_id: agent.parent_agent_id ?? null,
      created_at: instant(agent.created_at),
      expires_at: instant(agent.expires_at),
      ...(halt && { halt }),
    });
  },
});
