/** The state "all agents stopped" as owners see it. */
import { z } from 'zod';
import type { AgentsStopped } from '../policy/agents-stopped.ts';

export const AgentsStoppedShown = z
  .object({
    since: z.iso.datetime(),
    by: z.guid().describe('the owner who stopped them'),
    reason: z.string().nullable(),
    agents: z.int().describe('how many were active then'),
  })
  .meta({ id: 'AgentsStopped' });

export const agentsStoppedShown = ({ at, by, detail, agents }: AgentsStopped): z.output<typeof AgentsStoppedShown> => ({
  since: new Date(at).toISOString(),
  by,
  reason: detail,
  agents,
});
