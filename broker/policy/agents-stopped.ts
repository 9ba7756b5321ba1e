/** The state in which an owner has stopped all agents of an organisation, until an owner resumes them. */
import { z } from 'zod';
import type { AgentStatus, HaltCause } from './facts.ts';

export const AgentsStopped = z.strictObject({
  /** Milliseconds since the epoch. */
  at: z.number(),
  /** The owner's uuid. */
  by: z.string(),
  /** The owner's message, shown to the agents. */
  detail: z.string().nullable(),
  /** How many agents were active at that time. */
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

/** Returns an active agent as suspended by an owner while all agents are stopped. Other agents are returned unchanged. */
export function standingWhenStopped<One extends Standing>(agent: One, stopped: AgentsStopped): One {
  if (agent.status !== 'active') return agent;
  const { at, detail } = stopped;
  return { ...agent, status: 'suspended', status_since: at, status_cause: 'owner_manual', status_detail: detail };
}
