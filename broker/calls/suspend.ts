/** Suspends agents automatically: by a guardrail, or after too many refusals. */

import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';
import { hasStandingParent } from '../facts/facts.ts';
import { AutoSuspend, countsAsAnomaly } from '../policy/auto-suspend.ts';
import type { HaltCause, Verdict } from '../policy/facts.ts';
import { moveAgent } from '../store/agents.ts';
import { countRefusal, refusalsAt } from '../store/refusal-counts.ts';
import type { Db } from '../store/store.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import type { Call } from './call.ts';

type Suspension = {
  /** The caller, or its parent. */
  agent: { id: string; agent_id: string };
  cause: HaltCause;
  detail: string;
  /** Whether the reason still holds; checked in the suspending transaction, when no one else can change the status. */
  isStanding?: (db: Db) => Promise<boolean>;
};

/**
 * Suspends an agent because of a refused call: effective at the next call on every replica, and recorded in the same transaction. An agent
 * that is no longer active keeps its status. Throws AuditUnavailable.
 */
async function suspend(services: Changing, { who, record }: Call, suspension: Suspension): Promise<void> {
  const { agent, cause, detail, isStanding } = suspension;
  const { broker } = services;
  const { organisation_id: organisationId } = who.agent;
  const by = byBroker(organisationId, record.correlationId);
  const place = { organisationId, id: agent.id };
  const move = { from: ['active'] as const, to: 'suspended' as const, cause, detail };
  const done = await recordChange(services, by, { reason: 'agent_suspended', detail, agent }, async (tx, note) => {
    if (!(await moveAgent(tx, place, move, broker.clock()))) return rollback('not_active');
    if (isStanding && !(await isStanding(tx))) return rollback('not_active');
    note({ cause, call: record.auditId, ...(agent.id !== who.agent.id && { child: who.agent.agent_id }) });
    return undefined;
  });
  if (!(done instanceof RolledBack)) broker.log.warn({ agent: agent.agent_id, cause, detail }, 'agent suspended');
}

/**
 * Applies the side effects of a refusal: a guardrail's suspension, and the refusal count when the organisation has a rule for it. A count
 * that fails does not prevent the refusal from being recorded. Throws AuditUnavailable.
 */
export async function afterRefusal(
  services: Changing,
  call: Call,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<void> {
  const { agent } = call.who;
  if (verdict.suspend) {
    const detail = `guardrail ${verdict.suspend.guardrail}${byChild(call)}`;
    await suspend(services, call, { agent: familyHead(call), cause: 'suspended_by_policy', detail });
  }
  const { auto_suspend: rule } = agent;
  // A replay is not an attempt of the agent: an owner approved it.
  const isReplay = call.record.approval !== undefined;
  if (rule === null || isReplay || verdict.suspend || !countsAsAnomaly(verdict.reason)) return;
  // While the parent is stopped, an owner is already looking at it.
  if (!hasStandingParent(agent, services.broker.clock())) return;
  try {
    await count(services, call, AutoSuspend.parse(JSON.parse(rule)), verdict.reason);
  } catch (error) {
    services.broker.log.error({ err: error, agent: agent.agent_id }, 'could not count a refusal for auto-suspension');
  }
}

/**
 * The agent to suspend: the parent of a child, otherwise the agent. The family counts as one, because the parent delegated what the child
 * tries, and could otherwise continue through the next child. Suspending the parent stops them all.
 */
function familyHead({ who: { agent } }: Call): Suspension['agent'] {
  const { parent_id: id, parent_agent_id } = agent;
  return id === null ? agent : { id, agent_id: parent_agent_id ?? '' };
}

const byChild = ({ who: { agent } }: Call): string => (agent.parent_id === null ? '' : ` by ${agent.agent_id}`);

/** Counts a refusal; those of an agent and its children count together. */
async function count(services: Changing, call: Call, rule: AutoSuspend, reason: string): Promise<void> {
  const { broker } = services;
  const agent = familyHead(call);
  const { refusals, within_seconds } = rule;
  const counter = { organisation_id: call.who.agent.organisation_id, agent_id: agent.id };
  const windowMs = within_seconds * 1000;
  const counted = await countRefusal(broker.store.db, counter, windowMs, broker.clock());
  if (counted < refusals) return;
  const last = `the last for ${reason} on ${call.action.platform}${byChild(call)}`;
  await suspend(services, call, {
    agent,
    cause: 'anomaly_auto_suspend',
    detail: `${counted} refused calls within ${within_seconds} s, those of its children included; ${last}`,
    // An owner may have resumed the agent meanwhile, which resets the count.
    isStanding: async (db) => (await refusalsAt(db, counter, windowMs, broker.clock())) >= refusals,
  });
}
