/** Fetching through the broker with git itself: what comes is what the code host has. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { git } from '../world/git-host.ts';
import { clone, type GitWorld, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { postgresNote, STORES } from '../world/stores.ts';

describe.each(STORES)(`git fetch on %s${postgresNote}`, (store) => {
  let given: GitWorld;
  let bare: string;
  beforeAll(async () => {
    given = await startGitWorld(store);
    bare = given.host.repository('acme/app');
  });
  const rows = () => listAuditRows(given.world.running.broker.store.db, given.organisation.id, { limit: 100 });

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

  test('a repository that is not on the list is refused in the words of the specification', async () => {
    const agent = await given.agent({ constraints: { repos: ['acme/other'] } });
    const { code, stderr } = await runGit(['clone', remoteOf(agent, 'acme/app')]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(
      "remote: agent-broker: repo_not_allowed - acme/app is not in the agent's allowed repositories",
    );
    expect(existsSync(join(bare, 'HEAD'))).toBe(true);
  });
});
