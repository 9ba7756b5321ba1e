/** Whether the agent that asked for a decision can still use it. */
import type { HeldCall } from '../store/held-calls.ts';

type Statuses = Pick<HeldCall, 'agent_status' | 'parent_status'>;

/** Whether calls of the agent are refused until an owner resumes it, its parent, or all agents. */
export const isSuspended = (held: Statuses & Pick<HeldCall, 'agents_stopped'>): boolean =>
  held.agents_stopped !== null || [held.agent_status, held.parent_status].includes('suspended');

/** Returns what an owner has to resume before an approved call of the agent is made; undefined: nothing. */
export function whatIsSuspended(
  held: Parameters<typeof isSuspended>[0] & Pick<HeldCall, 'platform_suspended'>,
): 'agent' | 'platform' | undefined {
  if (isSuspended(held)) return 'agent';
  return held.platform_suspended === 1 ? 'platform' : undefined;
}

/** Whether the agent or its parent was revoked: whatever was pending ended then. */
export const hasEnded = ({ agent_status, parent_status }: Statuses): boolean =>
  [agent_status, parent_status].some((status) => status === 'revoked' || status === 'deleted');
