/** Git after `agent-broker git-setup`: addresses of the code host, and no token in any of them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { runCommand } from '../world/command.ts';
import { git } from '../world/git-host.ts';
import { clone, type GitWorld, runGit, startGitWorld } from '../world/git-world.ts';
import { newFolder } from '../world/stores.ts';

describe('git after git-setup', () => {
  let given: GitWorld;
  beforeAll(async () => {
    given = await startGitWorld('sqlite');
    for (const name of ['acme/app', 'acme/lib', 'other/lib']) given.host.repository(name);
    const agent = await given.agent();
    const folder = await clone(agent, 'acme/app');
    // One address that stands alone, and one beside the repository's own.
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

  /** The environment of a machine where it was run. */
  async function machineOf(agent: TestAgent): Promise<Record<string, string>> {
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
    const { code, stderr } = await runCommand(['git-setup', '--profile', profile], { cwd: home, env: environment });
    expect(code, stderr).toBe(0);
    return environment;
  }
  const cloneAll = (environment: Record<string, string>, folder: string) =>
    runGit(['clone', '-q', '--recurse-submodules', 'https://github.com/acme/app', folder], { environment });

  test('submodules come through the broker, by both kinds of address', async () => {
    const environment = await machineOf(await given.agent());
    const folder = join(newFolder(), 'work');
    const run = await cloneAll(environment, folder);
    expect(run, run.stderr).toMatchObject({ code: 0 });
    for (const name of ['acme/lib', 'other/lib'])
      expect(readFileSync(join(folder, name, 'README.md'), 'utf8')).toBe(`# ${name}\n`);
    expect(readFileSync(join(folder, '.git/config'), 'utf8')).not.toMatch(/eyJ|password/);
  });

  test('but for those that the grant does not list', async () => {
    const environment = await machineOf(await given.agent({ constraints: { repos: ['acme/*'] } }));
    const folder = join(newFolder(), 'work');
    const run = await cloneAll(environment, folder);
    expect(run.stderr).toContain("other/lib is not in the agent's allowed repositories");
    expect(run.code).not.toBe(0);
    expect(existsSync(join(folder, 'other/lib/README.md'))).toBe(false);
  });
});
