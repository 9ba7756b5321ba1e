/** Pushing through the broker with git itself: what arrives, what is recorded, and what the receipt says. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { clone, GIT_SCOPES, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { git } from '../world/servers/git-host.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';

/** Makes a commit in a clone. */
function commit(folder: string, file: string, content: string | Buffer): void {
  writeFileSync(join(folder, file), content);
  git(folder, 'add', '.');
  git(folder, 'commit', '-qm', file);
}

describe.each(ONE_STORE)(`git push on %s${postgresNote}`, (store) => {
  const given = shared(() => startGitWorld(store));

  /** The rows of an agent's pushes, newest first. */
  async function pushes(agent: TestAgent) {
    const rows = await listAuditRows(given.world.db, given.organisation.id, { limit: 200 });
    const made = rows.filter((row) => row.agent_public_id === agent.agentId && row.path?.endsWith('/git-receive-pack'));
    return made.filter((row) => row.reason !== 'probe');
  }
  const refsOf = (row: { flags: string | null }) => JSON.parse(row.flags ?? '{}').pushed_refs;
  const push = (agent: TestAgent, folder: string, repository: string, ...args: string[]) =>
    runGit(['push', remoteOf(agent, repository), ...args], { folder });

  test('a new branch, more commits, a tag and a deletion arrive, each recorded with its refs', async () => {
    const bare = given.host.repository('acme/app');
    const agent = await given.agent();
    const folder = await clone(agent, 'acme/app');
    commit(folder, 'a.txt', 'a');
    expect(await push(agent, folder, 'acme/app', 'HEAD:refs/heads/agent/one')).toMatchObject({ code: 0 });
    expect(git(bare, 'rev-parse', 'agent/one')).toBe(git(folder, 'rev-parse', 'HEAD'));
    const [created] = await pushes(agent);
    expect(created).toMatchObject({ result: 'allowed', reason: 'approved', method: 'POST', upstream_status: 200 });
    expect(refsOf(created!)).toEqual([{ ref: 'refs/heads/agent/one', action: 'create' }]);

    commit(folder, 'b.txt', 'b');
    git(folder, 'tag', '-a', 'v1', '-m', 'v1');
    const both = ['HEAD:refs/heads/agent/one', 'refs/tags/v1'];
    expect(await push(agent, folder, 'acme/app', ...both)).toMatchObject({ code: 0 });
    expect(refsOf((await pushes(agent))[0]!)).toEqual([
      { ref: 'refs/heads/agent/one', action: 'update' },
      { ref: 'refs/tags/v1', action: 'create' },
    ]);

    expect(await push(agent, folder, 'acme/app', '--delete', 'agent/one')).toMatchObject({ code: 0 });
    expect(() => git(bare, 'rev-parse', '--verify', '-q', 'agent/one')).toThrow();
    const [deleted] = await pushes(agent);
    expect(refsOf(deleted!)).toEqual([{ ref: 'refs/heads/agent/one', action: 'delete' }]);
    const { payload, row } = await evidenceOf(given.world, agent, deleted!.id);
    expect(payload.pushed_refs).toEqual([{ ref: 'refs/heads/agent/one', action: 'delete' }]);
    expect(row.receipt_format).toBe(2);
    const { request_bytes, request_sha256, answer_bytes, ended } = JSON.parse(row.flags!);
    expect([ended, request_bytes > 0, answer_bytes > 0, request_sha256.length]).toEqual(['complete', true, true, 64]);
  });

  test.each(['sha1', 'sha256'] as const)('a push to a repository of %s objects arrives', async (format) => {
    const name = `acme/${format}`;
    const bare = given.host.repository(name, { format });
    const agent = await given.agent();
    const folder = await clone(agent, name);
    commit(folder, 'a.txt', 'a');
    expect(await push(agent, folder, name, 'HEAD:agent/x')).toMatchObject({ code: 0 });
    expect(git(bare, 'rev-parse', 'agent/x')).toBe(git(folder, 'rev-parse', 'HEAD'));
    expect(refsOf((await pushes(agent))[0]!)).toEqual([{ ref: 'refs/heads/agent/x', action: 'create' }]);
  });

  test('a long push, which git sends chunked after a probe, arrives, and leaves no file', async () => {
    const bare = given.host.repository('acme/long');
    const agent = await given.agent();
    const folder = await clone(agent, 'acme/long');
    commit(folder, 'random.bin', randomBytes(5 * 1024 * 1024));
    const config = { 'http.postBuffer': '65536' };
    const run = await runGit(['push', remoteOf(agent, 'acme/long'), 'HEAD:agent/long'], { folder, config });
    expect(run, run.stderr).toMatchObject({ code: 0 });
    expect(git(bare, 'rev-parse', 'agent/long')).toBe(git(folder, 'rev-parse', 'HEAD'));
    const rows = await listAuditRows(given.world.db, given.organisation.id, { limit: 10 });
    expect(rows.map(({ reason }) => reason)).toContain('probe');
    expect(JSON.parse((await pushes(agent))[0]!.flags!).request_bytes).toBeGreaterThan(5 * 1024 * 1024);
    await expect.poll(() => given.world.running.services.gitBodies.held).toEqual({ memory: 0, files: 0 });
    expect(given.world.running.services.budget.held).toEqual({ calls: 0, bytes: 0 });
  });

  test('GT-12: push options arrive, their names are recorded, and a guardrail can refuse them', async () => {
    const bare = given.host.repository('acme/options');
    const organisation = await given.world.organisation({
      guardrails: [
        {
          name: 'no-ci',
          effect: 'deny',
          when: 'has(request.git) && request.git.push_options.exists(o, o == "ci.skip")',
        },
      ],
    });
    await organisation.platform({ id: 'codehost', manifest: { ...github, git_base_url: given.host.url } });
    const grants = { codehost: { scopeList: GIT_SCOPES } };
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants });
    const folder = await clone(agent, 'acme/options');
    commit(folder, 'a.txt', 'a');
    const said = ['-o', 'reviewer=ann', '-o', 'topic=x', 'HEAD:agent/x'];
    const url = remoteOf(agent, 'acme/options');
    expect(await runGit(['push', url, ...said], { folder })).toMatchObject({ code: 0 });
    expect(git(bare, 'rev-parse', 'agent/x')).toBe(git(folder, 'rev-parse', 'HEAD'));
    const refused = await runGit(['push', '-o', 'ci.skip', url, 'HEAD:agent/y'], { folder });
    expect(refused.stderr).toContain('denied_by_guardrail - acme/options: guardrail no-ci denies this call');
    const rows = await listAuditRows(given.world.db, organisation.id, { limit: 20 });
    const options = rows.flatMap(({ flags }) => JSON.parse(flags ?? '{}').push_options ?? []);
    expect(options).toEqual(['ci.skip', 'reviewer', 'topic']);
  });

  test('a policy about refs allows the agent’s branches only', async () => {
    const bare = given.host.repository('acme/guarded');
    const before = git(bare, 'rev-parse', 'main');
    const agent = await given.agent({
      rules: [
        { effect: 'allow', scopes: ['codehost:contents.read'] },
        {
          effect: 'allow',
          scopes: ['codehost:contents.write'],
          when: 'has(request.git) && request.git.refs.all(r, r.name.startsWith("refs/heads/agent/") && r.action != "delete")',
        },
      ],
    });
    const folder = await clone(agent, 'acme/guarded');
    commit(folder, 'a.txt', 'a');
    expect(await push(agent, folder, 'acme/guarded', 'HEAD:agent/ok')).toMatchObject({ code: 0 });
    const refused = await push(agent, folder, 'acme/guarded', 'HEAD:main');
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/^remote: agent-broker: denied_by_policy - acme\/guarded: /m);
    expect(refused.stderr).toContain('! [remote rejected] HEAD -> main (denied_by_policy)');
    expect(git(bare, 'rev-parse', 'main')).toBe(before);
    const [denied] = await pushes(agent);
    expect(denied).toMatchObject({ result: 'denied', reason: 'denied_by_policy', upstream_status: null });
    const { payload } = await evidenceOf(given.world, agent, denied!.id);
    expect(payload.pushed_refs).toEqual([{ ref: 'refs/heads/main', action: 'update' }]);
    expect((await push(agent, folder, 'acme/guarded', '--delete', 'agent/ok')).code).not.toBe(0);
  });
});
