/**
 * The rule by which the broker itself suspends an agent (specification, AgentHalt: anomaly_auto_suspend): so many refusals of
 * it and its children within so much time. An organisation states it; without one, agents are refused as often as they ask.
 */
import { z } from 'zod';
import type { DenyReason } from './facts.ts';

export const AutoSuspend = z.strictObject({
  refusals: z.int().min(3).max(10_000).describe('how many refused calls of an agent and its children are too many'),
  within_seconds: z.int().min(10).max(86_400).describe('within how much time; it begins with the first of them'),
});
export type AutoSuspend = z.output<typeof AutoSuspend>;

/**
 * Refusals of what the agent should not have tried. Those that come of what an owner did (suspended it or a platform, let a
 * grant end, took its policy away), or of an open breaker, say nothing of the agent.
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
