/** The broker suspends an agent by itself: by a guardrail, or because it is refused too often. */
import { AutoSuspend, countsAsAnomaly } from '../decision/auto-suspend.ts';
import type { HaltCause, Verdict } from '../decision/facts.ts';
import { moveAgent } from '../store/agents.ts';
import { countRefusal } from '../store/refusal-counts.ts';
import type { Call } from './call.ts';
import type { Governor } from './governor.ts';
import { recordChange } from './owner-change.ts';

type Suspension = { cause: HaltCause; detail: string };

/** Undoes the event of whoever was not first. */
class NotActive extends Error {}

/**
 * Suspends the agent of a call that is being refused, in force at the very next call on every replica, on record in the
 * same transaction. An agent that is not active any more stays what it is. Throws AuditUnavailable.
 */
async function suspend(governor: Governor, { who, row }: Call, { cause, detail }: Suspension): Promise<void> {
  const { broker } = governor;
  const { agent } = who;
  const by = {
    owner: { id: 'broker', organisation_id: agent.organisation_id },
    how: 'broker' as const,
    correlationId: row.correlation_id,
  };
  const place = { organisationId: agent.organisation_id, id: agent.id };
  const move = { from: ['active'] as const, to: 'suspended' as const, cause, detail };
  try {
    await recordChange(governor, by, { reason: 'agent_suspended', detail, agent }, async (db, note) => {
      if (!(await moveAgent(db, place, move, broker.clock()))) throw new NotActive();
      note({ cause, call: row.id });
    });
    broker.log.warn({ agent: agent.agent_id, cause, detail }, 'agent suspended');
  } catch (error) {
    if (!(error instanceof NotActive)) throw error;
  }
}

/**
 * What a refusal brings with it beside the answer: a guardrail's suspension, and a count where the organisation has a rule.
 * A count that cannot be kept does not keep the refusal from being recorded. Throws AuditUnavailable.
 */
export async function afterRefusal(
  governor: Governor,
  call: Call,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<void> {
  if (verdict.suspend)
    await suspend(governor, call, { cause: 'suspended_by_policy', detail: `guardrail ${verdict.suspend.guardrail}` });
  const { auto_suspend: rule } = call.who.agent;
  // What an owner approved is not tried by the agent again when it is replayed.
  const isReplay = call.row.approval_id !== null;
  if (rule === null || isReplay || verdict.suspend || !countsAsAnomaly(verdict.reason)) return;
  try {
    await count(governor, call, AutoSuspend.parse(JSON.parse(rule)), verdict.reason);
  } catch (error) {
    governor.broker.log.error({ err: error, agent: call.who.agent.agent_id }, 'a refusal could not be counted');
  }
}

async function count(governor: Governor, call: Call, rule: AutoSuspend, reason: string): Promise<void> {
  const { broker } = governor;
  const { organisation_id, id: agent_id } = call.who.agent;
  const { refusals, within_seconds } = rule;
  const now = broker.clock();
  const counted = await countRefusal(broker.store.db, { organisation_id, agent_id }, within_seconds * 1000, now);
  if (counted < refusals) return;
  await suspend(governor, call, {
    cause: 'anomaly_auto_suspend',
    detail: `${counted} refused calls within ${within_seconds} s; the last for ${reason} on ${call.action.platform}`,
  });
}
