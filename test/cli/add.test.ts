/** `agent-broker add`, with a broker and a GitHub on loopback. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { leaksOf } from '../world/canary.ts';
import { commandHost, startServe } from '../world/command.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { type GitHubServer, startGitHub } from '../world/servers/github-server.ts';
import { newFolder } from '../world/stores.ts';

const CLASSIC = 'ghp_CANARYclassic0123456789abcdefghij1234';
const FINE = 'github_pat_CANARYfine0123456789abcdefghij';
const BAD = 'ghp_CANARYbad00123456789abcdefghij123456';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
let github: GitHubServer;
let other: GitHubServer;

beforeAll(async () => {
  const tokens = new Map([
    [CLASSIC, 'repo:status, gist'],
    [FINE, null],
  ]);
  github = await startGitHub(tokens);
  other = await startGitHub(tokens);
  afterFile(() => Promise.all([github.close(), other.close()]));
  const allowed = `${github.address},${other.address}`;
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: allowed };
  await startServe(['--no-sandbox'], { cwd: folder, env }, 'agent-broker plan');
});

const run = async (words: readonly string[], input = '', env: Record<string, string> = {}) => {
  const ran = await hosted(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env }, input });
  for (const token of [CLASSIC, FINE, BAD]) expect(leaksOf(token, ran.stdout + ran.stderr)).toEqual([]);
  return ran;
};
const add = (...words: string[]) => ['add', 'github', '--base-url', github.api, ...words];

type Connection = { id: string; label: string };
// biome-ignore lint/suspicious/noExplicitAny: a test looks at whatever came.
type Answer = { platforms: any[]; connections: Connection[]; manifest: object };

let session: string | undefined;
async function owner(path: string) {
  session ??= (await run(['owner', 'token'])).stdout.trim();
  const { url } = JSON.parse(readFileSync(join(data, 'run', 'broker.json'), 'utf8'));
  return (await fetch(url + path, { headers: { authorization: `Bearer ${session}` } })).json() as Promise<Answer>;
}
const platforms = async () =>
  (await owner('/owner/platforms')).platforms.map((one) => [
    one.platform_id,
    one.base_url,
    one.connections.map(({ label }: Connection) => label),
  ]);

describe('agent-broker add github', () => {
  test('a token that GitHub refuses creates nothing, and the error says where to make another', async () => {
    const refused = await run(add('--token-stdin'), `${BAD}\n`);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain('answered 401');
    expect(refused.stderr).toContain('Nothing was kept');
    expect(refused.stderr).toContain(`${github.url}/settings/personal-access-tokens/new`);
    expect(await platforms()).toEqual([]);
  });

  test('without a terminal, names the options for a token; a token in the arguments is wrong usage', async () => {
    const unsaid = await run(add());
    expect([unsaid.code, unsaid.stderr]).toEqual([2, expect.stringContaining('--token-stdin < FILE, or --token-env')]);
    const unset = await run(add('--token-env', 'NO_SUCH_VARIABLE'));
    expect([unset.code, unset.stderr]).toEqual([1, expect.stringContaining('NO_SUCH_VARIABLE')]);
    expect((await run(add('--token', 'x'))).code).toBe(2);
    expect((await run(['add', 'gitlab'])).stderr).toContain('github, slack');
    expect((await run(['add', 'jira', '--token-stdin'], 'a@b.example:token')).stderr).toContain('--base-url');
    expect(await platforms()).toEqual([]);
  });

  test('creates platform and connection, prints the account and scopes of the token, and the next command', async () => {
    const added = await run(add('--token-env', 'GH'), '', { GH: CLASSIC });
    expect(added.code, added.stderr).toBe(0);
    for (const words of [
      'Added codehost (github at',
      'ann’s, good until 2031-01-31',
      'It may do: repo:status, gist',
      'issues.write (needs repo or public_repo)',
      'issues      metadata.read, search.read, issues.read',
      `agent-broker connect cursor --grant codehost=issues --repos 'OWNER/*'`,
    ])
      expect(added.stdout).toContain(words);
    expect(await platforms()).toEqual([['codehost', github.api, ['github']]]);
    const { manifest } = await owner('/owner/platforms/codehost');
    expect(manifest).toMatchObject({ git_base_url: github.url, auth: { type: 'bearer' } });
  });

  test('an existing connection is not created again: the error names --replace and --label, or --id for another platform', async () => {
    const again = await run(add('--token-stdin'), FINE);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('has the connection "github" already')]);
    expect(again.stderr).toMatch(/--replace.*--label NAME/);
    const elsewhere = await run(['add', 'github', '--base-url', other.api, '--token-stdin'], FINE);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([1, expect.stringContaining(`not at ${other.api}`)]);
    expect(elsewhere.stderr).toContain('--id NAME');
    const taken = await run(['add', 'slack', '--id', 'codehost', '--token-stdin'], FINE);
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining('which is no slack')]);
    expect(await platforms()).toEqual([['codehost', github.api, ['github']]]);

    // A refused token replaces nothing.
    const { connections } = await owner('/owner/connections');
    const refused = await run(add('--replace', '--token-stdin'), BAD);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('answered 401')]);
    expect((await owner('/owner/connections')).connections).toEqual(connections);
    const replaced = await run(add('--replace', '--token-stdin', '--json'), FINE);
    expect(replaced.code, replaced.stderr).toBe(0);
    const now = JSON.parse(replaced.stdout);
    expect(now).toMatchObject({ made: { platform: false, connection: false }, connection: 'github' });
    expect(now.test).toMatchObject({ ok: true, account: 'ann', granted_scopes: null });
    expect((await owner('/owner/connections')).connections).toMatchObject([{ id: connections[0]!.id, revision: 2 }]);

    const beside = await run(['add', 'github', '--label', 'bot', '--token-stdin'], CLASSIC);
    expect([beside.code, beside.stderr]).toEqual([0, '']);
    const second = await run(['add', 'github', '--id', 'ghe', '--base-url', other.url, '--token-stdin'], FINE);
    expect([second.code, second.stderr]).toEqual([0, '']);
    expect(second.stdout).toContain('The platform does not say what the credential may do');
    expect(await platforms()).toEqual([
      ['codehost', github.api, ['github', 'bot']],
      ['ghe', other.api, ['github-ghe']],
    ]);
    const which = await run(['add', 'github', '--token-stdin'], FINE);
    expect([which.code, which.stderr]).toEqual([1, expect.stringContaining('has the connection')]);
  });
});
