/** Reads the parts of an agent's history that its rules depend on: usage of limits, and earlier calls that rules look back at. */
import { kindOfText } from '../../calls/earlier-calls.ts';
import { limitPlace } from '../../calls/limits.ts';
import { unknownUntil, untilOf } from '../../policy/earlier.ts';
import type { Instant, RuleSource } from '../../policy/facts.ts';
import { type LimitSource, periodAt } from '../../policy/limit.ts';
import { textOf } from '../../policy/rules/compile.ts';
import { describeRule } from '../../policy/rules/describe.ts';
import type { AfterSource } from '../../policy/rules/rule.ts';
import { spanMs } from '../../policy/span.ts';
import { present } from '../../runtime/present.ts';
import { findCallMarks } from '../../store/call-marks.ts';
import { findLimitCounts } from '../../store/limit-counts.ts';
import { findOrganisation } from '../../store/organisations.ts';
import { findPolicy } from '../../store/policies.ts';
import type { Db } from '../../store/store.ts';
import { readStoredRules } from '../../store/stored-json.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { guardrailsOf } from '../policies/guardrails.ts';

export type AgentLimit = LimitSource & {
  source: 'policy' | 'guardrail';
  rule: string;
  /** Usage in the current period; for a limit of all agents, by all of them. */
  used: number;
  resetsAt: Instant;
};

/**
 * A rule that applies because of an earlier call, named by its audit row; null when the call is unknown because the store was restored (`madeAt`).
 */
export type AgentEarlier = {
  source: 'policy' | 'guardrail';
  rule: string;
  after: AfterSource;
  auditId: string | null;
  madeAt: Instant;
  until: Instant;
};

/** `family`: the agent, or a child's parent, since limits, calls and policy are shared. */
export async function readAgentHistory(
  db: Db,
  family: Pick<AgentTable, 'organisation_id' | 'id' | 'policy_id'>,
  now: Instant,
  restoredAt: Instant | undefined,
): Promise<{ limits: AgentLimit[]; earlier: AgentEarlier[] }> {
  const { organisation_id: organisationId, id: agentId, policy_id: policyId } = family;
  const organisation = present(await findOrganisation(db, organisationId), 'organisation');
  const policy = policyId === null ? undefined : await findPolicy(db, organisationId, policyId);
  const { guardrails } = await guardrailsOf(db, organisation);
  const rules = policy ? readStoredRules(policy.rules, `rules of policy ${policy.id}`) : [];
  const limited = [...limitsIn(guardrails, 'guardrail'), ...limitsIn(rules, 'policy')];
  const whose = { organisationId, agentId, policyId: policy?.id };
  const used = await findLimitCounts(
    db,
    limited.map((one) => limitPlace(whose, one, now)),
  );
  const limits = limited.map(({ source, rule, limit }, i) => ({
    ...limit,
    source,
    rule,
    used: used[i] ?? 0,
    resetsAt: periodAt(limit.per, now).end,
  }));
  const looking = [...lookBackRules(guardrails, 'guardrail'), ...lookBackRules(rules, 'policy')];
  const kinds = [...new Set(looking.map(({ kind }) => kind))];
  const marks = await findCallMarks(db, { organisation_id: organisationId, agent_id: agentId }, kinds);
  const earlier = looking.flatMap(({ kind, withinMs, ...one }): AgentEarlier[] => {
    const mark = marks.get(kind);
    const until = mark && untilOf(withinMs, mark.made_at);
    if (mark && until !== undefined && until > now)
      return [{ ...one, auditId: mark.audit_id, madeAt: mark.made_at, until }];
    const unknown = unknownUntil(withinMs, restoredAt, now);
    return unknown === undefined ? [] : [{ ...one, auditId: null, madeAt: restoredAt ?? 0, until: unknown }];
  });
  return { limits, earlier };
}

/** A rule of a policy without a name is described by its content. */
const lookBackRules = (rules: readonly RuleSource[], source: AgentEarlier['source']) =>
  rules.flatMap((rule) => {
    const { name, after } = rule;
    if (!after) return [];
    const { within, ...selecting } = after;
    const kind = kindOfText(textOf(selecting));
    return [{ source, rule: name ?? describeRule(rule), after, kind, withinMs: spanMs(within) ?? 0 }];
  });

const limitsIn = (rules: readonly RuleSource[], source: AgentLimit['source']) =>
  rules.flatMap(({ name: rule, limit }) => (limit && rule !== undefined ? [{ source, rule, limit }] : []));
