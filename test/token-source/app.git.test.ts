/** Governed git on a connection to an App: the token of each request is for that repository, and to read or to write. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type GitHost, git, startGitHost } from '../world/git-host.ts';
import { clone, remoteOf, runGit } from '../world/git-world.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { type AppWorld, givenAppWorld, READ } from './app-world.ts';

describe.each(STORES)(`git with an App on %s${postgresNote}`, (store) => {
  let code: GitHost;
  let app: AppWorld;
  const taken: string[] = [];
  beforeAll(async () => {
    code = await startGitHost({
      // As strict as GitHub: the token of one repository, or to read, is good for nothing else.
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
    });
    for (const name of ['acme/app', 'acme/web']) code.repository(name);
  });
  app = givenAppWorld(store, {
    connected: false,
    environment: () => ({ AGENT_BROKER_ALLOW_PRIVATE: `${app.host.address},${code.address}` }),
  });
  const connect = async () => {
    const applied = await app.apply({ platform: { git_base_url: code.url } });
    expect(applied.status, applied.text).toBe(200);
  };

  test('clone and push: one repository, to read and then to write; workflows only for who may write them', async () => {
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
    // Reading by REST goes with the token that cloning got.
    const before = app.host.exchanges.length;
    expect((await (await app.agent()).act(READ)).status).toBe(200);
    expect(app.host.exchanges).toHaveLength(before);
    expect(new Set(taken)).toEqual(new Set(['read acme/app', 'write acme/app']));
  });

  test('a token that the host takes no longer is replaced, and git sees nothing of it', async () => {
    await connect();
    const agent = await app.agent();
    await clone(agent, 'acme/app');
    app.host.issued.clear();
    app.world.clock.skewMs = 60_000;
    await clone(agent, 'acme/app');
    expect(app.host.exchanges).toHaveLength(2);
  });

  test('a suspended installation is one line that says so', async () => {
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
