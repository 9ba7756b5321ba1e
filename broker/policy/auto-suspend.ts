/**
 * The rule by which the broker itself suspends an agent (specification, AgentHalt: anomaly_auto_suspend): a number of refusals of the agent and its children
 * within a time window. An organisation opts in by setting it; without it, refusals never suspend an agent.
 */
import { z } from 'zod';
import type { DenyReason } from './facts.ts';

export const AutoSuspend = z.strictObject({
  refusals: z.int().min(3).max(10_000).describe('how many refused calls of an agent and its children are too many'),
  within_seconds: z.int().min(10).max(86_400).describe('within how much time; it begins with the first of them'),
});
export type AutoSuspend = z.output<typeof AutoSuspend>;

/**
 * Reasons for refusals that the agent caused itself. Refusals caused by an owner's action (suspending the agent or a platform, an expired grant, a removed
 * policy) or by an open breaker are not counted.
 */
const COUNTED: ReadonlySet<DenyReason> = new Set([
  'scope_not_granted',
  'no_permission_record',
  'denied_by_guardrail',
  'denied_by_policy',
  'endpoint_scope_mismatch',
  'recipient_not_allowed',
  'repo_not_allowed',
] as const);

/** Whether a refusal for this reason counts towards the rule. */
export const countsAsAnomaly = (reason: DenyReason): boolean => COUNTED.has(reason);
