/** All agents of an organisation stopped at once by an owner, until an owner lets them go on. */
import { z } from 'zod';
import type { AgentStatus, HaltCause } from './facts.ts';

export const AgentsStopped = z.strictObject({
  /** Milliseconds since the epoch. */
  at: z.number(),
  /** The owner's uuid. */
  by: z.string(),
  /** The owner's own words, which the agents read. */
  detail: z.string().nullable(),
  /** How many agents were active then. */
  agents: z.number(),
});
export type AgentsStopped = z.output<typeof AgentsStopped>;

type Standing = {
  status: AgentStatus;
  status_since: number | null;
  status_cause: HaltCause | null;
  status_detail: string | null;
};

/** The status of an agent while all are stopped; see `standingWhenStopped`. */
export const statusWhenStopped = (status: AgentStatus): AgentStatus => (status === 'active' ? 'suspended' : status);

/** How an active agent stands while all are stopped: as one that an owner suspended. Others stand as they did. */
export function standingWhenStopped<One extends Standing>(agent: One, stopped: AgentsStopped): One {
  if (agent.status !== 'active') return agent;
  const { at, detail } = stopped;
  return { ...agent, status: 'suspended', status_since: at, status_cause: 'owner_manual', status_detail: detail };
}
