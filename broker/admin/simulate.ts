/** What would become of an agent's call, asked by an owner: by the rules in force, or by proposed ones. */
import { type Simulated, simulate } from '../calls/simulate.ts';
import type { Action } from '../wire/action.ts';
import { loadAgent } from './find-agent.ts';
import { type GivenRules, takeRules } from './given-rules.ts';
import { ChangeRefused } from './refused.ts';

export type Simulating = {
  /** By its uuid or its agent id. */
  agentId: string;
  action: Action;
  policyRules: GivenRules['rules'] | undefined;
  guardrails: GivenRules['rules'] | undefined;
};

/** Nothing is written or sent. `warnings`: about the proposed rules. Throws ChangeRefused. */
export async function simulateCall(
  services: Parameters<typeof simulate>[0],
  organisationId: string,
  { agentId, action, policyRules, guardrails }: Simulating,
): Promise<Extract<Simulated, { kind: 'decided' }> & { warnings: string[] }> {
  const { db } = services.broker.store;
  const agent = await loadAgent(db, organisationId, agentId);
  const take = async (kind: GivenRules['kind'], at: string, rules: GivenRules['rules'] | undefined) =>
    rules && (await takeRules(db, organisationId, { kind, at, rules }));
  const policy = await take('policy', 'policy_rules', policyRules);
  const guards = await take('guardrail', 'guardrails', guardrails);
  const simulated = await simulate(services, agent.agent_id, action, {
    ...(policy && { policy: policy.rules }),
    ...(guards && { guardrails: guards.rules }),
  });
  if (simulated.kind === 'invalid') throw new ChangeRefused(simulated.refused.code, simulated.refused.detail);
  return { ...simulated, warnings: [...(policy?.warnings ?? []), ...(guards?.warnings ?? [])] };
}
