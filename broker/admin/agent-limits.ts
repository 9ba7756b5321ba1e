/** What an agent has used of the limits of the rules that are in force for it. */
import { limitPlace } from '../calls/limits.ts';
import type { Instant, RuleSource } from '../policy/facts.ts';
import { type LimitSource, periodAt } from '../policy/limit.ts';
import { present } from '../policy/present.ts';
import { findLimitCounts } from '../store/limit-counts.ts';
import { findOrganisation } from '../store/organisations.ts';
import { findPolicy } from '../store/policies.ts';
import type { Db } from '../store/store.ts';
import { readStoredRules } from '../store/stored-json.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import { guardrailsOf } from './guardrails.ts';

export type AgentLimit = LimitSource & {
  source: 'policy' | 'guardrail';
  rule: string;
  /** In the period of now; of a limit of all agents by all of them. */
  used: number;
  resetsAt: Instant;
};

/** `family`: the agent, or of a child its parent, whose limits and policy are the child's. */
export async function readAgentLimits(
  db: Db,
  family: Pick<AgentTable, 'organisation_id' | 'id' | 'policy_id'>,
  now: Instant,
): Promise<AgentLimit[]> {
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
  return limited.map(({ source, rule, limit }, i) => ({
    ...limit,
    source,
    rule,
    used: used[i] ?? 0,
    resetsAt: periodAt(limit.per, now).end,
  }));
}

const limitsIn = (rules: readonly RuleSource[], source: AgentLimit['source']) =>
  rules.flatMap(({ name: rule, limit }) => (limit && rule !== undefined ? [{ source, rule, limit }] : []));
