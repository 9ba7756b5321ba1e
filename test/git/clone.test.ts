/** Fetching through the broker with git itself: the result equals the code host's content. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { clone, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { GIT_ENVIRONMENT, git, startGitHost } from '../world/servers/git-host.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, shared, startWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`git fetch on %s${postgresNote}`, (store) => {
  let bare: string;
  const given = shared(() => startGitWorld(store));
  beforeAll(async () => {
    bare = given.host.repository('acme/app');
  });
  const rows = () => listAuditRows(given.world.db, given.organisation.id, { limit: 100 });

  test('a clone has the commits and files of the code host', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/app'] } });
    const folder = await clone(agent, 'acme/app.git');
    expect(git(folder, 'rev-parse', 'HEAD')).toBe(git(bare, 'rev-parse', 'main'));
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toBe('# acme/app\n');
    const made = (await rows()).filter((row) => row.agent_public_id === agent.agentId);
    expect(
      made.map(({ method, path, result, reason, state }) => [method, path, result, reason, state]).toSorted(),
    ).toEqual([
      ['GET', '/git/acme/app/info/refs', 'allowed', 'advertised', 'final'],
      ['POST', '/git/acme/app/git-upload-pack', 'allowed', 'approved', 'final'],
      ['POST', '/git/acme/app/git-upload-pack', 'allowed', 'approved', 'final'],
    ]);
    const { seen } = given.host;
    expect(seen.every(({ url }) => url.startsWith('/acme/app.git/'))).toBe(true);
    expect(seen.some(({ headers }) => headers['git-protocol'] === 'version=2')).toBe(true);
  });

  test('fetches from a code host with another user name, and from one with its own user name and password', async () => {
    const cases = [
      { manifest: { git_user: 'oauth2' }, user: 'oauth2', secret: CANARY },
      { manifest: { auth: { type: 'basic' } }, user: 'ann', secret: `ann:${CANARY}` },
    ];
    const made = await Promise.all(
      cases.map(async (one) => ({ ...one, host: await startGitHost({ secret: CANARY, user: one.user }) })),
    );
    const addresses = made.map(({ host }) => host.address).join();
    const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: addresses });
    for (const { manifest, secret, host } of made) {
      host.repository('acme/app');
      const organisation = await world.organisation();
      await organisation.platform({
        id: 'codehost',
        secret,
        manifest: { ...github, base_url: host.url, git_base_url: `${host.url}/`, ...manifest },
      });
      const grants = { codehost: { scopeList: ['codehost:contents.read'] } };
      const folder = await clone(await organisation.agent({ rules: ALLOW_ALL, grants }), 'acme/app');
      expect(readFileSync(join(folder, 'README.md'), 'utf8'), secret).toBe('# acme/app\n');
    }
  });

  test.each(['0', '1', '2'])('a clone works with protocol version %s', async (version) => {
    const agent = await given.agent();
    given.host.seen.length = 0;
    const folder = newFolder();
    const run = await runGit(['clone', '-q', remoteOf(agent, 'acme/app'), 'work'], {
      folder,
      config: { 'protocol.version': version },
    });
    expect(run, run.stderr).toMatchObject({ code: 0 });
    expect(git(join(folder, 'work'), 'rev-parse', 'HEAD')).toBe(git(bare, 'rev-parse', 'main'));
    const wanted = version === '0' ? undefined : `version=${version}`;
    expect(new Set(given.host.seen.map(({ headers }) => headers['git-protocol']))).toEqual(new Set([wanted]));
  });

  test('shallow, deepened, partial and sparse clones work', async () => {
    const agent = await given.agent();
    const source = given.host.repository('acme/history', { files: { 'a.txt': 'a', 'large.bin': 'x'.repeat(100_000) } });
    for (const n of [1, 2, 3]) {
      const tree = git(source, 'rev-parse', 'main^{tree}').trim();
      const made = git(source, 'commit-tree', tree, '-p', 'main', '-m', `commit ${n}`).trim();
      git(source, 'update-ref', 'refs/heads/main', made);
    }
    const shallow = await clone(agent, 'acme/history', '--depth', '1');
    expect(git(shallow, 'rev-list', '--count', 'HEAD').trim()).toBe('1');
    const deepened = await runGit(['fetch', '--unshallow', remoteOf(agent, 'acme/history')], { folder: shallow });
    expect(deepened, deepened.stderr).toMatchObject({ code: 0 });
    expect(git(shallow, 'rev-list', '--count', 'HEAD').trim()).toBe('4');
    const partial = await clone(agent, 'acme/history', '--filter=blob:none', '--no-checkout');
    expect(git(partial, 'rev-list', '--objects', '--missing=print', 'HEAD')).toMatch(/^\?/m);
    // Missing objects are fetched on demand.
    expect(await runGit(['checkout', '-q', 'HEAD'], { folder: partial })).toMatchObject({ code: 0 });
    expect(readFileSync(join(partial, 'a.txt'), 'utf8')).toBe('a');
    const single = await clone(agent, 'acme/history', '--single-branch', '--no-tags', '-b', 'main');
    expect(git(single, 'rev-list', '--count', 'HEAD').trim()).toBe('4');
  });

  test('a long negotiation, which git compresses, works', async () => {
    const agent = await given.agent();
    const source = given.host.repository('acme/wide');
    execFileSync('git', ['fast-import', '--quiet', '--date-format=now'], {
      cwd: source,
      env: GIT_ENVIRONMENT,
      input: Array.from(
        { length: 40 },
        (_, n) => `commit refs/heads/b${n}\ncommitter A <a@acme.example> now\ndata 3\nb${String(n).padStart(2, '0')}\n`,
      ).join(''),
    });
    const folder = newFolder();
    const run = await runGit(['clone', '-q', remoteOf(agent, 'acme/wide'), 'work'], {
      folder,
      environment: { GIT_TRACE_CURL: '1' },
    });
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/=> Send header: Content-Encoding: gzip/i);
    expect(git(join(folder, 'work'), 'branch', '-r').trim().split('\n').length).toBe(42);
  });

  test('a fetch of new commits, and one without any, work', async () => {
    const agent = await given.agent();
    const folder = await clone(agent, 'acme/app');
    const tree = git(bare, 'rev-parse', 'main^{tree}').trim();
    git(bare, 'update-ref', 'refs/heads/next', git(bare, 'commit-tree', tree, '-p', 'main', '-m', 'next').trim());
    const args = ['fetch', remoteOf(agent, 'acme/app'), 'next'];
    for (const _ of [1, 2]) expect(await runGit(args, { folder })).toMatchObject({ code: 0 });
    expect(git(folder, 'rev-parse', 'FETCH_HEAD')).toBe(git(bare, 'rev-parse', 'next'));
  });

  test('a repository that is not listed is refused with the text of the specification', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/other'] } });
    const { code, stderr } = await runGit(['clone', remoteOf(agent, 'acme/app')]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(
      "remote: agent-broker: repo_not_allowed - acme/app is not in the agent's allowed repositories",
    );
    expect(existsSync(join(bare, 'HEAD'))).toBe(true);
  });
});
