/** Stops and resumes all agents of an organisation. */
import { z } from 'zod';
import { resumeAllAgents, stopAllAgents } from '../../../admin/agents/stop-agents.ts';
import { text } from '../../../wire/action.ts';
import { AgentsStoppedShown, agentsStoppedShown } from '../../agents-stopped.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const SWITCHES = [
  {
    verb: 'suspend-all',
    change: stopAllAgents,
    summary: 'Stops all agents of the organisation, also those created later, until they are resumed together.',
    is: 'They are stopped.',
  },
  {
    verb: 'resume-all',
    change: resumeAllAgents,
    summary: 'Resumes all agents that were stopped together; agents that were suspended individually stay suspended.',
    is: 'They are no longer stopped; this is the state before.',
  },
] as const;

/** POST /owner/agents/suspend-all and /resume-all: in force from the next decision, on every replica. */
export const switchAllAgents = SWITCHES.map(({ verb, change, summary, is }) =>
  route({
    method: 'POST',
    path: `/owner/agents/${verb}`,
    auth: 'owner',
    role: 'admin',
    capability: `owner.agents.${verb.replace('-', '_')}`,
    summary,
    body: z.strictObject({
      reason: text(500).optional().describe('why; on record, and while they are stopped the agents read it'),
    }),
    bodyOptional: true,
    answers: { 200: { description: is, schema: AgentsStoppedShown } },
    errors: ['invalid_request', 'conflict', 'audit_unavailable'],
    handle: async (context) => {
      const { services, body } = context;
      return json(
        200,
        agentsStoppedShown(await change(services, changingOwner(context), { detail: body.reason ?? null })),
      );
    },
  }),
);
