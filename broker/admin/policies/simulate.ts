/** Evaluates an agent's call for an owner: by the rules in force, or by proposed ones. */
import { connectionLack } from '../../calls/connect.ts';
import { StoreUnreviewed } from '../../calls/restored-store.ts';
import { type Simulated, type SimulatedAction, simulate } from '../../calls/simulate.ts';
import { GIT_PLATFORM, nameOf, readTarget } from '../../git/git-call.ts';
import type { GitRef } from '../../policy/facts.ts';
import { refNameProblem } from '../../policy/refs/name.ts';
import { loadAgent } from '../agents/find-agent.ts';
import { toConnect } from '../grants/access.ts';
import { ChangeRefused } from '../refused.ts';
import { checkRules, type SubmittedRules } from './check-rules.ts';

export type Simulating = {
  /** The agent's uuid or agent id. */
  agentId: string;
  action: SimulatedAction['action'];
  /** For a push by git, the refs that it changes; absent for any other call. */
  refs?: readonly GitRef[] | undefined;
  policyRules: SubmittedRules['rules'] | undefined;
  guardrails: SubmittedRules['rules'] | undefined;
};

/** Why a call is not made although it is allowed or held. */
export type Prevented = { error: 'store_restored' | 'platform_not_connected' | 'needs_consent'; detail: string };
type Decided = Extract<Simulated, { kind: 'decided' }>;

/** Evaluates the call; nothing is written or sent. `warnings`: about the proposed rules. Throws ChangeRefused. */
export async function simulateCall(
  services: Parameters<typeof simulate>[0],
  organisationId: string,
  { agentId, action, refs, policyRules, guardrails }: Simulating,
): Promise<Decided & { warnings: string[]; prevented: Prevented | undefined }> {
  const { db } = services.broker.store;
  const agent = await loadAgent(db, organisationId, agentId);
  const take = async (kind: SubmittedRules['kind'], at: string, rules: SubmittedRules['rules'] | undefined) =>
    rules && (await checkRules(db, organisationId, { kind, at, rules }));
  const policy = await take('policy', 'policy_rules', policyRules);
  const guards = await take('guardrail', 'guardrails', guardrails);
  const simulated = await simulate(services, agent.agent_id, asGit(action, refs), {
    ...(policy && { policy: policy.rules }),
    ...(guards && { guardrails: guards.rules }),
    withStanding: true,
  });
  if (simulated.kind === 'invalid') {
    const { code, detail } = simulated.refused;
    // The simulated body is part of this request, whose own size was accepted.
    throw new ChangeRefused(code === 'payload_too_large' ? 'invalid_request' : code, detail);
  }
  return {
    ...simulated,
    warnings: [...(policy?.warnings ?? []), ...(guards?.warnings ?? [])],
    prevented: preventedBy(simulated, action.platform),
  };
}

/** Undefined also for platforms where people give the tokens: who the call is for is not known here. */
function preventedBy({ isUnreviewed, verdict, read, loaded }: Decided, platformId: string): Prevented | undefined {
  if (isUnreviewed) return { error: 'store_restored', detail: new StoreUnreviewed().message };
  const manifest = loaded.platform?.manifest;
  if (verdict.kind === 'deny' || !verdict.grant || !read || !manifest || manifest.per_person?.enabled) return undefined;
  const { scope } = read.ask;
  const lack = connectionLack(manifest, loaded.connections.get(verdict.grant.id), scope);
  // A connection whose credential was refused is tried by each call.
  if (lack === undefined || lack === 'platform_reauth_needed') return undefined;
  return { error: lack, detail: toConnect(lack, platformId, scope) };
}

/** Converts a request of git as `/git` does: its path has no `.git`, and only the known parts are set. Throws ChangeRefused. */
function asGit(action: SimulatedAction['action'], refs: readonly GitRef[] | undefined): SimulatedAction {
  const refuse = (detail: string) => new ChangeRefused('invalid_request', detail);
  const { platform, method, endpoint } = action;
  const target = platform === GIT_PLATFORM ? readTarget(method, endpoint) : 'unknown';
  const isPush = typeof target === 'object' && !target.isAdvertisement && target.service === 'git-receive-pack';
  if (refs && !isPush)
    throw refuse(`git: only a push has refs: POST /git/<owner>/<repo>/git-receive-pack on ${GIT_PLATFORM}.`);
  if (typeof target === 'string') return { action };
  if (isPush && !refs) throw refuse('git: is missing; name the refs of the push.');
  for (const { name } of refs ?? []) {
    const problem = refNameProblem(name);
    if (problem !== undefined) throw refuse(`git.refs: ${JSON.stringify(name)} ${problem}.`);
  }
  const [, , , ...last] = endpoint.slice(1).split('/');
  return {
    action: { ...action, endpoint: ['/git', nameOf(target), ...last].join('/') },
    git: { service: target.service, refs: refs ?? [] },
  };
}
