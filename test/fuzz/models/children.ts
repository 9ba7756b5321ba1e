/**
 * In any sequence of changes, a child never does what its parent cannot do at that moment, and is never issued with more than its parent holds
 * (specification, Child identity). Real calls of both, one after the other, on real stores.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Constraints } from '../../../broker/policy/facts.ts';
import { intersectRefs } from '../../../broker/policy/refs/patterns.ts';
import { intersectRepositories } from '../../../broker/policy/repos.ts';
import { deleteGrant, listGrants, putGrant } from '../../../broker/store/agents.ts';
import type { GrantTable } from '../../../broker/store/tables/rules.ts';
import { some } from '../../policy/arbitraries.ts';
import type { Answer, TestAgent } from '../../world/agent.ts';
import { issue, TestChild } from '../../world/child.ts';
import type { Organisation, World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const MANIFEST = {
  scopes: {
    'demo:read': ['GET /repos/*/*'],
    'demo:write': ['PATCH /repos/*/*'],
    'demo:delete': ['DELETE /repos/*/*'],
  },
  refs: {
    'PATCH /repos/*/*': [{ in: 'body', at: '/branch', prefix: 'refs/heads/', action: 'update' }],
    'DELETE /repos/*/*': [],
  },
};
const SCOPES = Object.keys(MANIFEST.scopes);
const ASKS = [
  { scope: 'demo:read', method: 'GET', endpoint: '/repos/acme/a' },
  { scope: 'demo:write', method: 'PATCH', endpoint: '/repos/acme/b', data: { branch: 'agent/x' } },
  { scope: 'demo:write', method: 'PATCH', endpoint: '/repos/acme/b', data: { branch: 'main' } },
  { scope: 'demo:delete', method: 'DELETE', endpoint: '/repos/acme/a' },
  { scope: 'demo:read', method: 'GET', endpoint: '/repos/other/x' },
];
const POLICIES = [
  [{ effect: 'allow' }],
  [{ effect: 'allow', scopes: ['demo:read'] }],
  [{ effect: 'allow' }, { effect: 'require_approval', methods: ['PATCH'] }],
  [{ effect: 'allow', when: 'agent.name == "boss"' }],
  [{ effect: 'allow' }, { effect: 'deny', when: 'agent.parent_agent_id != null', methods: ['DELETE'] }],
  [{ effect: 'allow', when: 'agent.parent_agent_id != null' }],
];
const GUARDRAILS = [
  [],
  [{ name: 'g', effect: 'deny', methods: ['DELETE'] }],
  [{ name: 'g', effect: 'require_approval', when: 'agent.name == "planner"' }],
];

const repos = fc.option(some(['acme/*'], ['acme/a'], ['acme/a', 'other/x'], []), { nil: undefined, freq: 2 });
const refs = fc.option(some(['agent/*'], ['agent/x', 'main'], ['**'], []), { nil: undefined, freq: 2 });
const changes = fc.option(some(['create', 'update'], ['create'], []), { nil: undefined, freq: 4 });
/** Constraints, as in grants and in a parent's request. */
const limits = fc
  .record({ repos, refs, ref_changes: changes })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Constraints);
const operation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('issue' as const),
      name: some('boss', 'planner', 'x'),
      scopes: fc.subarray(SCOPES, { minLength: 1 }),
      limits,
      second: some(false, false, true),
      ttl: some(600, 3_600),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('grant' as const),
      which: some('main', 'second'),
      scopes: fc.subarray(SCOPES),
      limits,
      held: some(false, false, true),
      ends: fc.option(some(-1, 900_000), { nil: null, freq: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('ungrant' as const), which: some('main', 'second') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('policy' as const), rules: some(...POLICIES) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('guardrails' as const), rules: some(...GUARDRAILS) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      whom: fc.nat(3),
      verb: some('suspend', 'resume', 'resume', 'revoke'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: some(300_000, 700_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('default' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('platform' as const), verb: some('suspend', 'resume', 'resume') }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer O> ? O : never;

/** Whether each entry of a list is allowed by the parent's list, if it has one. */
function isWithin<T extends string>(
  theirs: readonly T[] | undefined,
  own: readonly T[] | undefined,
  meet: (some: readonly T[], all: readonly T[]) => readonly string[],
): boolean {
  if (own === undefined) return true;
  return theirs?.every((entry) => meet([entry], own).includes(entry)) ?? false;
}

/** 0: made, 1: held, 2: anything else. */
const severity = ({ status }: Answer): number => (status === 200 ? 0 : status === 202 ? 1 : 2);

type Family = {
  organisation: Organisation;
  parent: TestAgent;
  children: { agent: TestChild; connection: string | null }[];
  connections: { main: string; second: string };
  defaultIs: 'main' | 'second';
};

export function children(world: World, count: Count): Fuzzed {
  const grantsOf = ({ organisation, parent }: Family) => listGrants(world.db, organisation.id, parent.id);

  async function found(): Promise<Family> {
    const organisation = await world.organisation();
    await organisation.platform({ manifest: MANIFEST, secret: null });
    const main = await organisation.connection('demo');
    const second = await organisation.connection('demo', { isDefault: false });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const parent = await organisation.agent({ name: 'planner', policy });
    return { organisation, parent, children: [], connections: { main, second }, defaultIs: 'main' };
  }

  async function perform(family: Family, op: Operation): Promise<void> {
    const { organisation, parent, children, connections } = family;
    switch (op.do) {
      case 'issue':
        return await issueOne(family, op);
      case 'grant': {
        const connection_id = op.which === 'main' ? null : connections.second;
        const known = (await grantsOf(family)).find((one) => one.connection_id === connection_id);
        const grant: GrantTable = {
          organisation_id: organisation.id,
          id: known?.id ?? crypto.randomUUID(),
          agent_id: parent.id,
          platform_id: 'demo',
          connection_id,
          scopes: JSON.stringify(op.scopes),
          constraints: JSON.stringify(op.limits),
          require_approval: op.held ? 1 : 0,
          expires_at: op.ends === null ? null : parent.clock() + op.ends,
          expires_text: null,
          created_at: known?.created_at ?? Date.now(),
        };
        return await putGrant(world.db, grant);
      }
      case 'ungrant': {
        const connection_id = op.which === 'main' ? null : connections.second;
        const known = (await grantsOf(family)).find((one) => one.connection_id === connection_id);
        if (known) await deleteGrant(world.db, organisation.id, known.id, Date.now());
        return;
      }
      case 'policy': {
        const policy = await organisation.policy(op.rules);
        await organisation.ask('POST', `/owner/agents/${parent.id}/policy`, { policy });
        return;
      }
      case 'guardrails':
        return await organisation.guardrails(op.rules);
      case 'move': {
        const whom = op.whom === 0 ? parent : children[op.whom - 1]?.agent;
        // Revoking the parent ends the sequence.
        if (whom && !(whom === parent && op.verb === 'revoke' && children.length < 2))
          await organisation.ask('POST', `/owner/agents/${whom.id}/${op.verb}`, {});
        return;
      }
      case 'wait':
        world.clock.skewMs += op.ms;
        return;
      case 'default': {
        family.defaultIs = family.defaultIs === 'main' ? 'second' : 'main';
        for (const name of ['main', 'second'] as const)
          await world.db
            .updateTable('connections')
            .set({ is_default: name === family.defaultIs ? 1 : 0 })
            .where('id', '=', connections[name])
            .execute();
        return;
      }
      case 'platform':
        await organisation.ask('POST', `/owner/platforms/demo/${op.verb}`, {});
    }
  }

  async function issueOne(family: Family, op: Extract<Operation, { do: 'issue' }>): Promise<void> {
    const { parent, children, connections } = family;
    const held = await grantsOf(family);
    const answer = await issue(parent, {
      name: op.name,
      ttl_seconds: op.ttl,
      grants: [
        {
          platform: 'demo',
          scopes: op.scopes,
          ...(op.second && { connection_id: connections.second }),
          constraints: op.limits,
        },
      ],
    });
    if (answer.status !== 201) return;
    const [granted] = answer.body.granted;
    const now = parent.clock();
    const within = held.some((one) => {
      const scopes = JSON.parse(one.scopes) as string[];
      const own = JSON.parse(one.constraints) as Constraints;
      const theirs = granted.constraints as Constraints;
      return (
        (one.expires_at === null || (one.expires_at > now && Date.parse(granted.expires_at) <= one.expires_at)) &&
        granted.scopes.every((scope: string) => scopes.includes(scope) && op.scopes.includes(scope)) &&
        isWithin(theirs.repos, own.repos, intersectRepositories) &&
        isWithin(theirs.refs, own.refs, intersectRefs) &&
        isWithin(theirs.ref_changes, own.ref_changes, (some, all) => some.filter((entry) => all.includes(entry)))
      );
    });
    expect(within, `issued ${answer.text} of ${JSON.stringify(held)}`).toBe(true);
    const { child_agent_id: agentId, bearer_token: bearer } = answer.body;
    const row = await world.db.selectFrom('agents').select('id').where('agent_id', '=', agentId).executeTakeFirst();
    const child = { agent: new TestChild(parent, { id: row!.id, agentId, bearer }), connection: granted.connection_id };
    // Only the latest three children are checked.
    children.splice(0, children.length, child, ...children.slice(0, 2));
  }

  async function expectContained({ parent, children, connections, defaultIs }: Family, story: string): Promise<number> {
    let made = 0;
    for (const { agent, connection } of children) {
      const permitted = await agent.get('/v1/agent/permissions');
      const usable: string[] = permitted.body.data?.platforms[0]?.scopes ?? [];
      for (const ask of ASKS) {
        const theirs = await agent.act({ platform: 'demo', ...ask });
        // The parent uses the same connection as the child's grant.
        const connection_id = connection ?? connections[defaultIs];
        const own = await parent.act({ platform: 'demo', ...ask, connection_id });
        expect(severity(own), `${story}: ${JSON.stringify(ask)} ${theirs.text} but ${own.text}`).toBeLessThanOrEqual(
          severity(theirs),
        );
        if (severity(theirs) < 2) {
          made++;
          // A scope that it could use is listed in its permissions.
          expect(usable, `${story}: ${theirs.text} but ${permitted.text}`).toContain(ask.scope);
        }
      }
    }
    return made;
  }

  const property = fc.asyncProperty(fc.array(operation, { minLength: 4, maxLength: 9 }), async (operations) => {
    world.clock.skewMs = 0;
    const family = await found();
    await issueOne(family, { do: 'issue', name: 'x', scopes: SCOPES, limits: {}, second: false, ttl: 3_600 });
    for (const [at, op] of operations.entries()) {
      await perform(family, op);
      const made = await expectContained(family, JSON.stringify(operations.slice(0, at + 1)));
      count(made > 0 ? 'children with permissions' : 'no child with permissions');
    }
  });
  return { property, reaches: ['children with permissions'] };
}
