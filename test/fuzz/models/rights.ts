/**
 * The permissions of an agent, modelled from the specification alone ("Permissions", "States and transitions"): the grant intersected with policy,
 * guardrails, expiry of the grant and status of the agent. And the steps by which owners change them.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { TestAgent } from '../../world/agent.ts';
import type { Organisation, World } from '../../world/world.ts';
import { type Step, step } from '../steps.ts';

/** Effects of the rule for `demo:write`; `two_approvers`: an approval by two people. All else is allowed. */
const EFFECTS = ['allow', 'require_approval', 'two_approvers', 'deny'] as const;
type Effect = (typeof EFFECTS)[number];

export type Rights = {
  status: 'active' | 'suspended' | 'revoked';
  grant: { scopes: string[]; isHeld: boolean; endsAt: number } | undefined;
  guardrails: Effect;
  policy: Effect;
  platformIsSuspended: boolean;
};

export type Holder = { world: World; organisation: Organisation; agent: TestAgent; policy: string };

export const READ = 'demo:read';
export const WRITE = 'demo:write';

const ruleOf = (effect: Effect) => ({
  ...(effect === 'two_approvers' ? { effect: 'require_approval', approvers: 2 } : { effect }),
  scopes: [WRITE],
});
const rules = (effect: Effect) => [{ effect: 'allow', scopes: [READ, 'demo:delete'] }, ruleOf(effect)];

/** Creates an agent in a new organisation: its reads are allowed, its writes are held. Resets the clock. */
export async function newHolder(world: World): Promise<{ rights: Rights; holder: Holder }> {
  world.clock.skewMs = 0;
  world.upstream.seen.length = 0;
  const organisation = await world.demoOrganisation();
  const policy = await organisation.policy(rules('require_approval'), 'p');
  const agent = await organisation.agent({ policy });
  return {
    holder: { world, organisation, agent, policy },
    rights: {
      status: 'active',
      grant: { scopes: [READ, WRITE, 'demo:delete'], isHeld: false, endsAt: Number.POSITIVE_INFINITY },
      guardrails: 'allow',
      policy: 'require_approval',
      platformIsSuspended: false,
    },
  };
}

/** Returns `made`, `held`, or the possible reasons of a refusal. */
export function verdictOf(rights: Rights, scope: string, now: number): 'made' | 'held' | string[] {
  const { status, grant, guardrails, policy, platformIsSuspended } = rights;
  const writes = scope === WRITE;
  const reasons: string[] = [];
  if (status !== 'active') reasons.push(`agent_${status}`);
  if (platformIsSuspended) reasons.push('platform_suspended');
  if (grant === undefined) reasons.push('no_permission_record');
  else {
    if (!grant.scopes.includes(scope)) reasons.push('scope_not_granted');
    if (grant.endsAt <= now) reasons.push('grant_expired');
  }
  if (writes && guardrails === 'deny') reasons.push('denied_by_guardrail');
  if (writes && policy === 'deny') reasons.push('denied_by_policy');
  if (reasons.length > 0) return reasons;
  const isHeld = grant?.isHeld || (writes && [guardrails, policy].some((effect) => effect !== 'allow'));
  return isHeld ? 'held' : 'made';
}

/** Returns how many people have to approve a call with this scope. */
export const approversOf = ({ guardrails, policy }: Rights, scope: string): number =>
  scope === WRITE && [guardrails, policy].includes('two_approvers') ? 2 : 1;

/** Sends a request of the owner, and expects this status. */
async function change({ organisation }: Holder, method: string, path: string, body: unknown, status = 200) {
  const answer = await organisation.ask(method, path, body);
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
}

export async function setPolicy(rights: Rights, holder: Holder, effect: Effect): Promise<void> {
  await change(holder, 'POST', '/owner/policies/p', { rules: rules(effect) });
  rights.policy = effect;
}

/** The steps for models with rights. */
export function stepsOnRights<Model extends { rights: Rights }, Real extends Holder>(): fc.Arbitrary<
  Step<Model, Real>
>[] {
  const grant = fc
    .record({
      scopes: fc.subarray([READ, WRITE, 'demo:delete'], { minLength: 1 }),
      require_approval: fc.boolean(),
      expires_in_seconds: fc.constantFrom(null, null, 400, 1_000),
    })
    .map((terms) =>
      step<Model, Real>(
        `grant(${JSON.stringify(terms)})`,
        async ({ rights }, real) => {
          const path = `/owner/agents/${real.agent.id}/grants/demo`;
          await change(real, 'POST', path, terms, rights.grant ? 200 : 201);
          const { scopes, require_approval: isHeld, expires_in_seconds: seconds } = terms;
          const endsAt = seconds === null ? Number.POSITIVE_INFINITY : real.agent.clock() + seconds * 1000;
          rights.grant = { scopes, isHeld, endsAt };
        },
        ({ rights }) => rights.status !== 'revoked',
      ),
    );
  const ungrant = fc.constant(
    step<Model, Real>(
      'take the grant away',
      async ({ rights }, real) => {
        await change(real, 'DELETE', `/owner/agents/${real.agent.id}/grants/demo`, undefined);
        rights.grant = undefined;
      },
      ({ rights }) => rights.grant !== undefined,
    ),
  );
  const guardrails = fc.constantFrom(...EFFECTS).map((effect) =>
    step<Model, Real>(`guardrails(${effect})`, async ({ rights }, real) => {
      const list = effect === 'allow' ? [] : [{ name: 'g', ...ruleOf(effect) }];
      await change(real, 'POST', '/owner/guardrails', { guardrails: list });
      rights.guardrails = effect;
    }),
  );
  const policy = fc
    .constantFrom(...EFFECTS)
    .map((effect) =>
      step<Model, Real>(`policy(${effect})`, async ({ rights }, real) => await setPolicy(rights, real, effect)),
    );
  const move = fc
    .constantFrom(...(['suspend', 'suspend', 'resume', 'resume', 'resume', 'revoke'] as const))
    .map((verb) =>
      step<Model, Real>(
        `${verb} the agent`,
        async ({ rights }, real) => {
          await change(real, 'POST', `/owner/agents/${real.agent.id}/${verb}`, {});
          rights.status = verb === 'suspend' ? 'suspended' : verb === 'resume' ? 'active' : 'revoked';
        },
        ({ rights: { status } }) =>
          status !== 'revoked' &&
          (verb === 'suspend' ? status === 'active' : verb === 'resume' ? status === 'suspended' : true),
      ),
    );
  const platform = fc.constantFrom('suspend', 'resume', 'resume').map((verb) =>
    step<Model, Real>(
      `${verb} the platform`,
      async ({ rights }, real) => {
        await change(real, 'POST', `/owner/platforms/demo/${verb}`, {});
        rights.platformIsSuspended = verb === 'suspend';
      },
      ({ rights }) => rights.platformIsSuspended !== (verb === 'suspend'),
    ),
  );
  const wait = fc.constantFrom(250, 250, 500).map((seconds) =>
    step<Model, Real>(`wait(${seconds} s)`, async (_, { world }) => {
      world.clock.skewMs += seconds * 1000;
    }),
  );
  return [grant, ungrant, guardrails, policy, move, platform, wait];
}
