/** Evaluates recorded calls by proposed rules; nothing is written or sent. */
import { type Judged, judgeRecorded } from '../../calls/judge-recorded.ts';
import type { Facts } from '../../policy/facts.ts';
import { compileGuardrails, compilePolicy } from '../../policy/rules/compile.ts';
import { checkRules, type SubmittedRules } from './check-rules.ts';
import { readPolicy } from './policies.ts';

type Trying = {
  /** Id or name of the policy whose rules are replaced. */
  policy: string | undefined;
  policyRules: SubmittedRules['rules'] | undefined;
  guardrails: SubmittedRules['rules'] | undefined;
  /** Milliseconds since the epoch. */
  since: number;
};

/**
 * Evaluates the recorded calls of the agents under a policy by other rules of it, and of all agents by other guardrails. `warnings`: about the
 * proposed rules. Throws ChangeRefused.
 */
export async function simulateRecorded(
  services: Parameters<typeof judgeRecorded>[0],
  organisationId: string,
  { policy: named, policyRules, guardrails, since }: Trying,
): Promise<Judged & { warnings: string[] }> {
  const { db } = services.broker.store;
  const take = async (kind: SubmittedRules['kind'], at: string, rules: SubmittedRules['rules'] | undefined) =>
    rules && (await checkRules(db, organisationId, { kind, at, rules }));
  const policy = named === undefined ? undefined : await readPolicy(db, organisationId, named);
  const rules = await take('policy', 'policy_rules', policyRules);
  const guards = await take('guardrail', 'guardrails', guardrails);
  const proposed = policy && rules && compilePolicy({ ...policy, rules: rules.rules });
  const guarding = guards && compileGuardrails({ version: 0, rules: guards.rules });
  const replace = (facts: Facts): Facts | undefined => {
    if (proposed && facts.policy?.id !== proposed.id) return undefined;
    return { ...facts, ...(proposed && { policy: proposed }), ...(guarding && { guardrails: guarding }) };
  };
  const judged = await judgeRecorded(services, { organisationId, since, replace });
  return { ...judged, warnings: [...(rules?.warnings ?? []), ...(guards?.warnings ?? [])] };
}
