/** Grants with `refs` and `ref_changes`, tested by real calls against a stand-in for GitHub. */
import { describe, expect, test } from 'vitest';
import { BUILTIN_PLATFORMS } from '../../broker/platforms/builtin.ts';
import { actThrough, deniedThrough, ENTRY_POINTS } from '../proxy/entry-points.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const { scopes, refs, graphql, content_scopes } = BUILTIN_PLATFORMS.github;
const R = '/repos/acme/app';
type Way = [scope: string, line: string, data: object | undefined, ref: string];
const WAYS: Way[] = [
  ['contents.write', `PATCH ${R}/git/refs/heads/BRANCH`, { sha: 'abc' }, 'refs/heads/'],
  ['contents.write', `DELETE ${R}/git/refs/heads/BRANCH`, undefined, 'refs/heads/'],
  ['contents.write', `POST ${R}/git/refs`, { ref: 'refs/heads/BRANCH', sha: 'abc' }, 'refs/heads/'],
  ['contents.write', `PUT ${R}/contents/a.md`, { branch: 'BRANCH', message: 'm' }, 'refs/heads/'],
  ['contents.write', `DELETE ${R}/contents/a.md`, { branch: 'BRANCH', sha: 'abc' }, 'refs/heads/'],
  ['contents.write', `POST ${R}/branches/BRANCH/rename`, { new_name: 'agent/y' }, 'refs/heads/'],
  ['contents.write', `POST ${R}/branches/agent/y/rename`, { new_name: 'BRANCH' }, 'refs/heads/'],
  ['workflows.write', `POST ${R}/merges`, { base: 'BRANCH', head: 'agent/y' }, 'refs/heads/'],
  ['deployments.write', `POST ${R}/deployments`, { ref: 'BRANCH' }, 'refs/heads/'],
];
/** A call that writes a branch. */
const onto = ([scope, line, data]: Way, branch: string) =>
  request(scope, line.replace('BRANCH', branch), data && JSON.parse(JSON.stringify(data).replace('BRANCH', branch)));
const request = (scope: string, line: string, data?: object) => {
  const [method, endpoint] = line.split(' ');
  return { platform: 'codehost', scope: `codehost:${scope}`, method, endpoint, ...(data && { data }) };
};

describe.each(ONE_STORE)(`a grant with refs, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(async () => {
    const made = await world.demoOrganisation();
    await made.platform({ id: 'codehost', manifest: { scopes, refs, graphql, content_scopes } });
    return made;
  });

  const limited = async (constraints: object, rules: readonly unknown[] = ALLOW_ALL) =>
    organisation.agent({
      policy: await organisation.policy(rules),
      grants: { codehost: { scopeList: Object.keys(scopes), constraints: JSON.stringify(constraints) } },
    });
  describe.each(ENTRY_POINTS)('through %s', (entryPoint) => {
    const refused = async (agent: TestAgent, call: ReturnType<typeof request>, violating: string[]) => {
      const answer = await deniedThrough(entryPoint, world, agent, call, 'repo_not_allowed');
      expect(answer.body.violating).toEqual(violating);
      expect(answer.body.constraint).toEqual({ kind: 'repos', reason: 'repo_not_allowed', violating });
      const { row } = await evidenceOf(world, agent, auditIdOf(answer));
      expect(JSON.parse(row.violating ?? 'null')).toEqual(violating);
      return answer.body.detail;
    };
    const passes = async (agent: TestAgent, call: ReturnType<typeof request>) => {
      await expectStatus(200, actThrough(entryPoint, agent, call));
    };

    test('every operation that writes main is refused, and the same on agent/x passes', async () => {
      const agent = await limited({ repos: ['acme/*'], refs: ['agent/*'] });
      for (const way of WAYS) {
        await refused(agent, onto(way, 'main'), [`${way[3]}main`]);
        await passes(agent, onto(way, 'agent/x'));
      }
    });

    test('operations by which others write a branch, and forks of an advisory, are refused', async () => {
      const agent = await limited({ refs: ['agent/*'] });
      const issue = (data: object) => request('issues.write', `POST ${R}/issues`, { title: 'x', ...data });
      for (const data of [{ assignees: ['Copilot'] }, { agent_assignment: { base_branch: 'main' } }])
        expect(await refused(agent, issue(data), [])).toMatch(/an agent of GitHub writes branches/);
      await passes(agent, issue({ assignees: ['ann'] }));
      const access = request('collaborators.write', `PUT ${R}/collaborators/ann`, { permission: 'push' });
      expect(await refused(agent, access, [])).toMatch(/may push to any branch/);
      const taken = request('collaborators.write', `DELETE ${R}/collaborators/ann`);
      expect(await refused(agent, taken, [])).toMatch(/whose review a rule requires/);
      await passes(agent, request('collaborators.write', `DELETE ${R}/invitations/1`));
      const advisory = (fork: boolean) =>
        request('security.write', `POST ${R}/security-advisories`, { summary: 'x', start_private_fork: fork });
      expect(await refused(agent, advisory(true), [])).toMatch(/a new repository begins/);
      await passes(agent, advisory(false));
      const within = await limited({ repos: ['acme/*'] });
      await refused(within, advisory(true), ['start_private_fork']);
      await passes(within, advisory(false));
    });

    test('tags pass only when a pattern names them', async () => {
      const [branches, tags] = [await limited({ refs: ['**'] }), await limited({ refs: ['refs/tags/v*'] })];
      const release = (tag_name: string) => request('releases.write', `POST ${R}/releases`, { tag_name });
      await refused(branches, release('v1'), ['refs/tags/v1']);
      await passes(tags, release('v1'));
      await refused(tags, request('contents.write', `DELETE ${R}/git/refs/heads/v1`), ['refs/heads/v1']);
    });

    test('ref_changes refuses deletes and changes of existing refs', async () => {
      const agent = await limited({ refs: ['agent/*'], ref_changes: ['create'] });
      await passes(agent, request('contents.write', `POST ${R}/git/refs`, { ref: 'refs/heads/agent/x', sha: 'abc' }));
      const line = `${R}/git/refs/heads/agent/x`;
      expect(await refused(agent, request('contents.write', `DELETE ${line}`), ['refs/heads/agent/x'])).toMatch(
        /delete refs/,
      );
      expect(
        await refused(agent, request('contents.write', `PATCH ${line}`, { sha: 'a' }), ['refs/heads/agent/x']),
      ).toMatch(/update refs/);
    });

    test('the refusal is never an approval request, and calls that write no ref pass', async () => {
      const agent = await limited({ refs: [] }, [
        ...ALLOW_ALL,
        { effect: 'require_approval', methods: ['POST', 'DELETE'] },
      ]);
      await refused(agent, request('contents.write', `DELETE ${R}/git/refs/heads/main`), ['refs/heads/main']);
      expect(
        (await actThrough(entryPoint, agent, request('issues.write', `POST ${R}/issues`, { title: 'x' }))).status,
      ).toBe(202);
      await passes(agent, request('contents.read', `GET ${R}/contents/a.md`));
    });

    test('a simulation by an owner gives the same result', async () => {
      const agent = await limited({ refs: ['agent/*'] });
      const { platform, scope, method, endpoint, data } = request('contents.write', `PUT ${R}/contents/a`, {
        branch: 'main',
      });
      const answer = await organisation.ask('POST', '/owner/simulate', {
        agent_id: agent.agentId,
        platform,
        scope,
        method,
        endpoint,
        data,
      });
      expect([answer.body.decision, answer.body.reason, answer.body.violating], answer.text).toEqual([
        'deny',
        'repo_not_allowed',
        ['refs/heads/main'],
      ]);
    });
  });

  describe.each(ENTRY_POINTS)('a guardrail that protects main for all agents, through %s', (entryPoint) => {
    const guarded = shared(async () => {
      const made = await world.organisation({
        guardrails: [
          {
            name: 'nobody-writes-main',
            effect: 'deny',
            platforms: ['codehost'],
            when: 'request.refs.exists(r, r.name == "refs/heads/main")',
          },
        ],
      });
      await made.platform({ id: 'codehost', manifest: { scopes, refs, graphql, content_scopes } });
      return await made.agent({ rules: ALLOW_ALL, grants: { codehost: { scopeList: Object.keys(scopes) } } });
    });
    const denied = async (call: ReturnType<typeof request>) =>
      (await deniedThrough(entryPoint, world, guarded, call, 'denied_by_guardrail')).body.detail;

    test('every operation that writes main is refused, and the same on agent/x passes', async () => {
      for (const way of WAYS) {
        expect(await denied(onto(way, 'main'))).toContain('nobody-writes-main');
        await expectStatus(200, actThrough(entryPoint, guarded, onto(way, 'agent/x')));
      }
    });

    test('a call that does not name the ref it writes is refused, and one that writes none passes', async () => {
      for (const [scope, line, data, why] of [
        ['pulls.merge', `PUT ${R}/pulls/7/merge`, {}, /the base of a pull request is not in the call/],
        ['contents.write', `PUT ${R}/contents/a.md`, { message: 'm' }, /is not named, or not plainly/],
        ['issues.write', `POST ${R}/issues`, { assignees: ['Copilot'] }, /an agent of GitHub writes branches/],
        [
          'contents.write',
          'POST /graphql',
          { query: 'mutation { createCommitOnBranch(input: {}) { clientMutationId } }' },
          /GraphQL/,
        ],
      ] as const)
        expect(await denied(request(scope, line, data))).toMatch(why);
      for (const [scope, line, data] of [
        ['issues.write', `POST ${R}/issues`, { title: 'x' }],
        ['contents.read', `GET ${R}/contents/a.md`],
        ['graphql.read', 'POST /graphql', { query: 'query { viewer { login } }' }],
      ] as const) {
        await expectStatus(200, actThrough(entryPoint, guarded, request(scope, line, data)));
      }
    });
  });
});
