/** Git after `agent-broker git-setup`: URLs of the code host lead to the broker, without a token in them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { runCommand } from '../world/command.ts';
import { clone, runGit, startGitWorld } from '../world/git-world.ts';
import { git } from '../world/servers/git-host.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';

describe('git after git-setup', () => {
  const given = shared(() => startGitWorld('sqlite'));
  beforeAll(async () => {
    for (const name of ['acme/app', 'acme/lib', 'other/lib']) given.host.repository(name);
    const agent = await given.agent();
    const folder = await clone(agent, 'acme/app');
    // One relative and one absolute URL.
    writeFileSync(
      join(folder, '.gitmodules'),
      ['acme/lib', 'other/lib']
        .map((name, i) => {
          const url = i === 0 ? '../lib.git' : `https://github.com/${name}`;
          return `[submodule "${name}"]\n\tpath = ${name}\n\turl = ${url}\n`;
        })
        .join(''),
    );
    git(folder, 'add', '.gitmodules');
    for (const name of ['acme/lib', 'other/lib']) {
      const commit = git(await clone(agent, name), 'rev-parse', 'HEAD').trim();
      git(folder, 'update-index', '--add', '--cacheinfo', `160000,${commit},${name}`);
    }
    git(folder, 'commit', '-qm', 'submodules');
    const pushed = await runGit(['push', '-q', 'origin', 'HEAD:main'], { folder });
    expect(pushed, pushed.stderr).toMatchObject({ code: 0 });
  });

  /** A machine with the agent's profile, and its environment. */
  function machineOf(agent: TestAgent) {
    const home = newFolder();
    const profile = join(home, 'profile.json');
    const content = {
      url: agent.baseUrl,
      agent_id: agent.agentId,
      owner_id: agent.ownerId,
      private_key: agent.keys.privateKey.export({ format: 'pem', type: 'pkcs8' }),
    };
    writeFileSync(profile, JSON.stringify(content), { mode: 0o600 });
    const environment = { HOME: home, GIT_CONFIG_GLOBAL: join(home, '.gitconfig') };
    const setup = (...words: string[]) =>
      runCommand(['git-setup', ...words, '--profile', profile], { cwd: home, env: environment });
    return { environment, setup };
  }
  /** The environment of a machine after git-setup. */
  async function setUp(agent: TestAgent): Promise<Record<string, string>> {
    const { environment, setup } = machineOf(agent);
    const { code, stderr } = await setup();
    expect(code, stderr).toBe(0);
    return environment;
  }
  const cloneAll = (environment: Record<string, string>, folder: string) =>
    runGit(['clone', '-q', '--recurse-submodules', 'https://github.com/acme/app', folder], { environment });

  test('submodules are fetched through the broker, by both kinds of URL', async () => {
    const environment = await setUp(await given.agent());
    const folder = join(newFolder(), 'work');
    const run = await cloneAll(environment, folder);
    expect(run, run.stderr).toMatchObject({ code: 0 });
    for (const name of ['acme/lib', 'other/lib'])
      expect(readFileSync(join(folder, name, 'README.md'), 'utf8')).toBe(`# ${name}\n`);
    expect(readFileSync(join(folder, '.git/config'), 'utf8')).not.toMatch(/eyJ|password/);
  });

  test('submodules that the grant does not list are refused', async () => {
    const environment = await setUp(await given.agent({ constraints: { repos: ['acme/*'] } }));
    const folder = join(newFolder(), 'work');
    const run = await cloneAll(environment, folder);
    expect(run.stderr).toContain("other/lib is not in the agent's allowed repositories");
    expect(run.code).not.toBe(0);
    expect(existsSync(join(folder, 'other/lib/README.md'))).toBe(false);
  });

  test.each([
    ['no grant on the code host', {}, 'add', '--scopes'],
    ['none of the scopes of git', { codehost: { scopeList: ['codehost:issues.read'] } }, 'change', '--add-scopes'],
  ])(
    'setup for an agent with %s is refused with the grant that an owner has to make',
    async (_what, grants, verb, option) => {
      const { environment, setup } = machineOf(await given.organisation.agent({ rules: ALLOW_ALL, grants }));
      const { code, stdout, stderr } = await setup();
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain('would refuse every clone and push');
      const granted = `codehost ${option} codehost:contents.read,codehost:contents.write"`;
      expect(stderr).toMatch(new RegExp(`agent-broker grant ${verb} \\S+ ${granted}`));
      expect(existsSync(environment.GIT_CONFIG_GLOBAL)).toBe(false);
    },
  );

  test('setup with a connection that the agent has no grant on is refused, and names those that it has', async () => {
    const { environment, setup } = machineOf(await given.agent());
    const refused = await setup('acme/app', '--connection', 'github');
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain(
      'no grant on a connection github of codehost. Its connections there: codehost-main. Nothing was written.',
    );
    expect(existsSync(environment.GIT_CONFIG_GLOBAL)).toBe(false);
    const { code, stderr } = await setup('acme/app', '--connection', 'codehost-main');
    expect(code, stderr).toBe(0);
    const listed = await runGit(['ls-remote', 'https://github.com/acme/app'], { environment });
    expect(listed, listed.stderr).toMatchObject({ code: 0 });
  });

  test('setup for an agent that may only push, or fetch with approval, succeeds', async () => {
    await setUp(await given.agent({ scopes: ['codehost:contents.write'] }));
    await setUp(await given.agent({ scopes: ['codehost:contents.read'], requireApproval: true }));
  });
});
