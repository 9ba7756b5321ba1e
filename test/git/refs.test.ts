/** A grant's refs and repositories, enforced for git itself and for REST calls on the same branches. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, expectDenied } from '../world/evidence.ts';
import { clone, GIT_SCOPES, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { git } from '../world/servers/git-host.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { shared } from '../world/world.ts';

describe.each(ONE_STORE)(`git under a grant's refs on %s${postgresNote}`, (store) => {
  let repositories = 0;
  const given = shared(() => startGitWorld(store, {}, { git_push_options: ['ci.skip', 'ci.variable'] }));

  /** Creates a repository with a clone that has one more commit. */
  async function cloned(agent: TestAgent) {
    const name = `acme/limits-${++repositories}`;
    const bare = given.host.repository(name);
    const folder = await clone(agent, name);
    writeFileSync(join(folder, 'a.txt'), 'a');
    git(folder, 'add', '.');
    git(folder, 'commit', '-qm', 'a');
    git(folder, 'tag', 'v1');
    const refs = () => git(bare, 'for-each-ref', '--format=%(refname)', '--sort=refname').trim().split('\n');
    return { name, folder, refs, main: () => git(bare, 'rev-parse', 'main') };
  }
  const push = (agent: TestAgent, { name, folder }: Awaited<ReturnType<typeof cloned>>, ...args: string[]) =>
    runGit(['push', remoteOf(agent, name), ...args], { folder });
  async function lastRow(agent: TestAgent) {
    const rows = await listAuditRows(given.world.db, given.organisation.id, { limit: 50 });
    return rows.find((row) => row.agent_public_id === agent.agentId);
  }
  async function expectRefused(agent: TestAgent, pushing: ReturnType<typeof push>, violating: string[]) {
    const run = await pushing;
    expect(run.code, run.stderr).not.toBe(0);
    const row = await lastRow(agent);
    expect(row).toMatchObject({ result: 'denied', reason: 'repo_not_allowed', upstream_status: null });
    expect(JSON.parse(row?.violating ?? 'null')).toEqual(violating);
    await evidenceOf(given.world, agent, row?.id ?? '');
  }

  test('the agent can push its branches, but not main, tags, notes or refs that are never allowed', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/*'], refs: ['agent/*'] } });
    const work = await cloned(agent);
    const main = work.main();
    expect(await push(agent, work, 'HEAD:refs/heads/agent/one')).toMatchObject({ code: 0 });
    await expectRefused(agent, push(agent, work, 'HEAD:main'), ['refs/heads/main']);
    await expectRefused(agent, push(agent, work, '--force', 'HEAD:main'), ['refs/heads/main']);
    await expectRefused(agent, push(agent, work, '--delete', 'main'), ['refs/heads/main']);
    await expectRefused(agent, push(agent, work, 'v1'), ['refs/tags/v1']);
    await expectRefused(agent, push(agent, work, 'HEAD:refs/notes/commits'), ['refs/notes/commits']);
    await expectRefused(agent, push(agent, work, 'HEAD:refs/for/main'), ['refs/for/main']);
    await expectRefused(agent, push(agent, work, 'HEAD:refs/heads/Agent/two'), ['refs/heads/Agent/two']);
    await expectRefused(agent, push(agent, work, 'HEAD:refs/heads/agent/a/b'), ['refs/heads/agent/a/b']);
    // A push is judged as a whole.
    await expectRefused(agent, push(agent, work, 'HEAD:agent/two', 'HEAD:main'), ['refs/heads/main']);
    expect([work.refs(), work.main()]).toEqual([['refs/heads/agent/one', 'refs/heads/main'], main]);
    expect(await push(agent, work, '--delete', 'agent/one')).toMatchObject({ code: 0 });
  });

  test('ref_changes: existing refs are neither changed nor deleted; tags are created when a pattern names them', async () => {
    const agent = await given.agent({
      constraints: { refs: ['agent/**', 'refs/tags/v*'], ref_changes: ['create'] },
    });
    const work = await cloned(agent);
    expect(await push(agent, work, 'HEAD:refs/heads/agent/a/b', 'v1')).toMatchObject({ code: 0 });
    git(work.folder, 'commit', '-qm', 'b', '--allow-empty');
    await expectRefused(agent, push(agent, work, 'HEAD:refs/heads/agent/a/b'), ['refs/heads/agent/a/b']);
    await expectRefused(agent, push(agent, work, '--delete', 'v1'), ['refs/tags/v1']);
    expect(await push(agent, work, 'HEAD:refs/heads/agent/c')).toMatchObject({ code: 0 });
  });

  test('a grant that allows no ref still lets the agent clone and fetch', async () => {
    const agent = await given.agent({ constraints: { refs: [] } });
    const work = await cloned(agent);
    expect(await runGit(['fetch', remoteOf(agent, work.name)], { folder: work.folder })).toMatchObject({ code: 0 });
    await expectRefused(agent, push(agent, work, 'HEAD:refs/heads/agent/x'), ['refs/heads/agent/x']);
  });

  test('a child can push at most what its parent can', async () => {
    const parent = await given.agent({ constraints: { repos: ['acme/*'], refs: ['agent/**'] } });
    const limited = (constraints: object) =>
      childOf(given.world, given.organisation, parent, {
        grants: [{ platform: 'codehost', scopes: GIT_SCOPES, constraints }],
      });
    const [same, narrower] = [await limited({}), await limited({ refs: ['agent/x'], ref_changes: ['create'] })];
    const work = await cloned(same);
    expect(await push(same, work, 'HEAD:refs/heads/agent/y')).toMatchObject({ code: 0 });
    await expectRefused(same, push(same, work, 'HEAD:main'), ['refs/heads/main']);
    await expectRefused(narrower, push(narrower, work, 'HEAD:refs/heads/agent/z'), ['refs/heads/agent/z']);
    expect(await push(narrower, work, 'HEAD:refs/heads/agent/x')).toMatchObject({ code: 0 });
    await expectRefused(narrower, push(narrower, work, '--delete', 'agent/x'), ['refs/heads/agent/x']);
  });

  const OPTIONS: [options: string[], name: string][] = [
    [['ci.skip', 'merge_request.target_project=other/app'], 'merge_request.target_project'],
    [['merge_request.create', 'merge_request.target=main'], 'merge_request.create'],
    [['merge_request.remove_source_branch'], 'merge_request.remove_source_branch'],
    [['repo.private=false'], 'repo.private'],
    [['CI.skip'], 'CI.skip'],
    [['ci.skip.more'], 'ci.skip.more'],
    [[' ci.skip'], ' ci.skip'],
  ];
  // Listed options are checked under any constraint of the grant: all of them with one constraint, one with each other.
  test.each<[string, Record<string, unknown>, typeof OPTIONS]>([
    ['repos', { repos: ['acme/*'] }, OPTIONS.slice(0, 1)],
    ['refs', { refs: ['agent/*'] }, OPTIONS],
    ['ref_changes', { ref_changes: ['create', 'update'] }, OPTIONS.slice(0, 1)],
  ])('with %s, a push with an option that the platform does not list is not sent', async (_, constraints, unlisted) => {
    const agent = await given.agent({ constraints });
    const work = await cloned(agent);
    const to = 'HEAD:refs/heads/agent/x';
    for (const [options, name] of unlisted) {
      const { length } = given.host.seen;
      const pushing = push(agent, work, ...options.flatMap((option) => ['-o', option]), to);
      await expectRefused(agent, pushing, [`-o ${name}`]);
      const { stderr } = await pushing;
      expect(stderr).toContain(
        `remote: agent-broker: repo_not_allowed - ${work.name}: the push option "${name}" may do more than this grant allows; push without -o`,
      );
      expect(stderr).toContain('! [remote rejected] HEAD -> agent/x (repo_not_allowed)');
      expect(stderr).not.toContain('other/app');
      expect(given.host.seen.slice(length).filter(({ method }) => method === 'POST')).toEqual([]);
    }
    expect(work.refs()).toEqual(['refs/heads/main']);
    expect(await push(agent, work, '-o', 'ci.skip', '-o', 'ci.variable=A=1', to)).toMatchObject({ code: 0 });
    expect(work.refs()).toEqual(['refs/heads/agent/x', 'refs/heads/main']);
  });

  test('a simulation by an owner shows the result of a push, a fetch and an advertisement', async () => {
    const agent = await given.agent({
      constraints: { repos: ['acme/app'], refs: ['agent/*'] },
      rules: [
        { effect: 'allow', scopes: ['codehost:contents.read'] },
        { effect: 'allow', when: 'has(request.git) && request.git.refs.all(r, r.action != "delete")' },
      ],
    });
    const ask = (line: string, more: object = {}) => {
      const [method, endpoint] = line.split(' ');
      const scope = `codehost:contents.${line.includes('receive') ? 'write' : 'read'}`;
      const body = { agent_id: agent.agentId, platform: 'codehost', scope, method, endpoint, ...more };
      return given.organisation.ask('POST', '/owner/simulate', body);
    };
    const pushing = (name: string, action = 'update') =>
      ask('POST /git/ACME/App.git/git-receive-pack', { git: { refs: [{ name, action }] } });
    const told = async (asked: ReturnType<typeof ask>) => {
      const { body } = await asked;
      return [body.decision, body.reason, body.violating];
    };
    expect(await told(pushing('refs/heads/agent/x'))).toEqual(['allow', 'approved', undefined]);
    expect(await told(pushing('refs/heads/main'))).toEqual(['deny', 'repo_not_allowed', ['refs/heads/main']]);
    expect(await told(pushing('refs/heads/agent/x', 'delete'))).toEqual(['deny', 'denied_by_policy', undefined]);
    expect(await told(ask('GET /git/acme/app.git/info/refs?service=git-receive-pack'))).toEqual([
      'allow',
      'approved',
      undefined,
    ]);
    expect(await told(ask('POST /git/acme/app/git-upload-pack'))).toEqual(['allow', 'approved', undefined]);
    expect(await told(ask('POST /git/acme/app.git.git/git-upload-pack'))).toEqual([
      'deny',
      'repo_not_allowed',
      ['acme/app.git'],
    ]);
    const refs = [{ name: 'refs/heads/x', action: 'update' }];
    for (const [line, more, words] of [
      ['POST /git/acme/app/git-receive-pack', {}, /name the refs of the push/],
      ['POST /git/acme/app/git-upload-pack', { git: { refs } }, /only a push has refs/],
      ['PATCH /repos/acme/app', { git: { refs } }, /only a push has refs/],
      [
        'POST /git/acme/app/git-receive-pack',
        { git: { refs: [{ name: 'refs/heads/a..b', action: 'update' }] } },
        /git\.refs/,
      ],
      ['POST /git/acme/app/git-receive-pack', { git: { refs: [{ name: 'main', action: 'force' }] } }, /git/],
    ] as const) {
      const answer = await ask(line, more);
      expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request']);
      expect(answer.body.detail).toMatch(words);
    }
  });

  test('a REST call reaches no git service, whatever manifest, policy and grant allow', async () => {
    const agent = await given.agent();
    const { length } = given.host.seen;
    for (const [method, endpoint] of [
      ['GET', '/git/acme/app/info/refs?service=git-upload-pack'],
      ['POST', '/git/acme/app/git-receive-pack'],
      ['GET', '/acme/app.git/info/refs?service=git-receive-pack'],
      ['POST', '/acme/app.git/git-receive-pack'],
      ['POST', '/acme/app/git-upload-pack/'],
      ['GET', '/acme/app.git/objects/info/packs'],
    ] as const) {
      const call = { platform: 'codehost', scope: 'codehost:contents.write', method, endpoint };
      const answer = await agent.act({ ...call, ...(method === 'POST' && { data: {} }) });
      expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_endpoint']);
      expect(answer.body.detail).toContain('push from /git/<owner>/<repo> with git');
      expect(await lastRow(agent)).toMatchObject({ result: 'errored', reason: 'invalid_endpoint' });
    }
    expect(given.host.seen).toHaveLength(length);
  });

  test('the same grant applies to REST calls', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/*'], refs: ['agent/*'] } });
    const call = { platform: 'codehost', scope: 'codehost:contents.write', method: 'PATCH', data: { sha: 'abc' } };
    const endpoint = '/repos/acme/app/git/refs/heads/main';
    const answer = await expectDenied(given.world, agent, { ...call, endpoint }, 'repo_not_allowed');
    expect(answer.body.violating).toEqual(['refs/heads/main']);
  });

  test('the grant does not let the agent remove the protection of branches', async () => {
    const scopes = ['codehost:protection.write', 'codehost:repo.admin', 'codehost:collaborators.write'];
    const agent = await given.agent({ scopes, constraints: { repos: ['acme/*'], refs: ['agent/*'] } });
    const { length } = given.host.seen;
    for (const [scope, method, endpoint, words] of [
      [scopes[0], 'DELETE', '/branches/main/protection', /rules that protect branches and tags/],
      [scopes[0], 'PUT', '/rulesets/7', /rules that protect branches and tags/],
      [scopes[1], 'PATCH', '', /the default branch/],
      [scopes[1], 'PUT', '/actions/permissions/workflow', /what workflows may do/],
      [scopes[2], 'PUT', '/collaborators/eve', /may push to any branch/],
    ] as const) {
      const call = { platform: 'codehost', scope, method, endpoint: `/repos/acme/app${endpoint}`, data: {} };
      const answer = await expectDenied(given.world, agent, call, 'repo_not_allowed');
      expect(answer.body.detail).toMatch(words);
    }
    expect(given.host.seen).toHaveLength(length);
  });
});
