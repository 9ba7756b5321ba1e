/** Pushes with git itself, each to a new branch. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { github } from '../../../broker/platforms/builtin/github.ts';
import { clone, GIT_SCOPES, remoteOf, runGit } from '../../world/git-world.ts';
import { git, startGitHost } from '../../world/servers/git-host.ts';
import { ALLOW_ALL, CANARY } from '../../world/world.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';

export async function pushes(scene: Scene): Promise<Work> {
  const { world, organisation, random, ledger, reader } = scene;
  const host = await startGitHost({ secret: CANARY });
  world.environment.AGENT_BROKER_ALLOW_PRIVATE += `,${host.address}`;
  scene.environment.AGENT_BROKER_ALLOW_PRIVATE = world.environment.AGENT_BROKER_ALLOW_PRIVATE!;
  await world.restart();
  await organisation.platform({ id: 'codehost', manifest: { ...github, base_url: host.url, git_base_url: host.url } });
  const bare = host.repository('acme/app');
  const agent = await organisation.agent({ rules: ALLOW_ALL, grants: { codehost: { scopeList: GIT_SCOPES } } });
  const folders = [await clone(agent, 'acme/app'), await clone(agent, 'acme/app')];
  const arrived = new Set<string>();
  const work = workers(folders.length, async (worker, turn) => {
    const folder = folders[worker]!;
    writeFileSync(join(folder, 'data'), randomBytes(Math.floor(random() * 60_000)));
    git(folder, 'add', '.');
    git(folder, 'commit', '-qm', `${turn}`);
    const branch = `b${worker}-${turn}`;
    const { code } = await runGit(['push', '-q', remoteOf(agent, 'acme/app'), `HEAD:refs/heads/${branch}`], { folder });
    if (code === 0) arrived.add(branch);
    else ledger.find('pushes that git reported as failed');
    return code === 0;
  });
  const isPush = ({ method, url }: { method: string; url: string }) =>
    method === 'POST' && url.endsWith('/git-receive-pack');
  return {
    ...work,
    // The duration of a complete git push.
    longestMs: 3_000,
    moment: async () => {
      const before = host.seen.length;
      while (host.seen.length === before) await pause(1);
    },
    check: async () => {
      const there = new Set(git(bare, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n'));
      const lost = [...arrived].filter((branch) => !there.has(branch));
      if (lost.length > 0) throw new Error(`git was told that ${lost.join()} arrived, and it is not there`);
      const rows = await reader.rows(
        `select * from audit_rows where path like '%/git-receive-pack' and method = 'POST'`,
      );
      const sent = host.seen.filter(isPush).length;
      const recorded = rows.filter(({ result }) => result !== 'denied' && result !== 'blocked').length;
      if (recorded < sent) throw new Error(`the host saw ${sent} pushes, and ${recorded} are on record`);
      const named = new Set(
        rows.flatMap(({ flags }) =>
          (JSON.parse(flags ?? '{}').pushed_refs ?? []).map(({ ref }: { ref: string }) =>
            ref.replace('refs/heads/', ''),
          ),
        ),
      );
      for (const branch of there)
        if (branch !== '' && branch !== 'main' && !named.has(branch))
          throw new Error(`${branch} is there, and on no record`);
      ledger.check(
        'a push that was reported to git exists, and each branch that exists has an audit row',
        there.size - 2,
      );
    },
  };
}
