/** Governed git on a connection to an App: the token of each request is limited to its repository, and to reading or writing. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { clone, remoteOf, runGit } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { git, startGitHost } from '../world/servers/git-host.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { shared } from '../world/world.ts';
import { type AppWorld, givenAppWorld, READ } from './app-world.ts';

describe.each(ONE_STORE)(`git with an App on %s${postgresNote}`, (store) => {
  let app: AppWorld;
  /** The local repository acme/app. */
  let bare: string;
  const taken: string[] = [];
  const code = shared(() =>
    startGitHost({
      // As strict as GitHub: a token for another repository, or for reading only, is refused.
      takes: (token, { url = '' }) => {
        const issued = app.host.issued.get(token);
        const [, owner, name] = /^\/([^/]+)\/([^/]+)\.git\//.exec(url) ?? [];
        const isPush = url.includes('receive-pack');
        const reach = issued?.repositories ?? ['acme/app', 'acme/web'];
        const ok =
          issued !== undefined &&
          reach.includes(`${owner}/${name}`) &&
          (!isPush || issued.permissions?.contents === 'write');
        if (ok) taken.push(`${isPush ? 'write' : 'read'} ${owner}/${name}`);
        return ok;
      },
    }),
  );
  beforeAll(async () => {
    bare = code.repository('acme/app');
    code.repository('acme/web');
  });
  app = givenAppWorld(store, {
    connected: false,
    environment: () => ({ AGENT_BROKER_ALLOW_PRIVATE: `${app.host.address},${code.address}` }),
  });
  const connect = () => expectStatus(200, app.apply({ platform: { git_base_url: code.url } }));

  test('clone and push use tokens for one repository, first to read, then to write; workflows only for agents that may write them', async () => {
    await connect();
    taken.length = 0;
    for (const [scopes, workflows] of [
      [['contents.read', 'contents.write'], undefined],
      [['contents.read', 'contents.write', 'workflows.write'], 'write'],
    ] as const) {
      const agent = await app.agent(undefined, [...scopes]);
      const work = await clone(agent, 'acme/app');
      writeFileSync(join(work, `a-${workflows}.txt`), 'a');
      git(work, 'add', '-A');
      git(work, 'commit', '-q', '-m', 'more');
      const pushed = await runGit(['push', '-q', remoteOf(agent, 'acme/app.git'), 'main'], { folder: work });
      expect(pushed.stderr).toBe('');
      expect(app.host.exchanges.at(-1)).toEqual({
        installation: expect.any(String),
        repositories: ['app'],
        permissions: { contents: 'write', ...(workflows && { workflows }) },
      });
    }
    expect(app.host.exchanges[0]?.permissions).toEqual({ contents: 'read' });
    // Reading through REST uses the token of the clone.
    const before = app.host.exchanges.length;
    expect((await (await app.agent()).act(READ)).status).toBe(200);
    expect(app.host.exchanges).toHaveLength(before);
    expect(new Set(taken)).toEqual(new Set(['read acme/app', 'write acme/app']));
  });

  test('a token that the host refuses is replaced, unnoticed by git', async () => {
    await connect();
    const agent = await app.agent();
    await clone(agent, 'acme/app');
    app.host.issued.clear();
    app.world.clock.skewMs = 60_000;
    await clone(agent, 'acme/app');
    expect(app.host.exchanges).toHaveLength(2);
  });

  test('a token that expires during a long push: nothing is written, and the next push arrives', async () => {
    await connect();
    const agent = await app.agent();
    const work = await clone(agent, 'acme/app');
    writeFileSync(join(work, 'random.bin'), randomBytes(3 * 1024 * 1024));
    git(work, 'add', '-A');
    git(work, 'commit', '-q', '-m', 'long');
    const main = () => git(bare, 'rev-parse', 'main');
    const before = main();
    // The advertisement is served with the token, the push is not.
    code.answer = ({ method, url = '' }) => {
      if (method !== 'POST' || !url.endsWith('/git-receive-pack')) return false;
      code.answer = undefined;
      app.host.issued.clear();
      app.world.clock.skewMs += 60_000;
      return false;
    };
    // With a declared length the body is not stored but streamed.
    const push = () =>
      runGit(['push', remoteOf(agent, 'acme/app'), 'HEAD:main'], {
        folder: work,
        config: { 'http.postBuffer': String(16 * 1024 * 1024) },
      });
    const refused = await push();
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(
      /^remote: agent-broker: upstream_unreachable - acme\/app: The token of the connection was refreshed while the request was being sent\. Try again\./m,
    );
    expect(refused.stderr).toContain('! [remote rejected] HEAD -> main (upstream_unreachable)');
    expect(main()).toBe(before);
    const rows = await listAuditRows(app.world.db, app.organisation.id, { limit: 1 });
    expect(rows[0]).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
    expect(JSON.parse(rows[0]?.flags ?? '{}')).toMatchObject({ code: 'body_gone', outcome: 'not_sent' });
    const { length } = app.host.exchanges;
    const again = await push();
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(main()).toBe(git(work, 'rev-parse', 'HEAD'));
    // It was issued when the first push was refused.
    expect(app.host.exchanges).toHaveLength(length);
  });

  test('a suspended installation is reported in one line', async () => {
    await connect();
    app.host.installations.values().next().value!.suspended = true;
    const agent = await app.agent();
    const run = await runGit(['ls-remote', remoteOf(agent, 'acme/app')]);
    expect(run.code).not.toBe(0);
    expect(run.stderr).toMatch(
      /remote: .*upstream_auth_failed.*acme\/app: The installation 42000001 of the App 4711 is suspended/,
    );
  });
});
