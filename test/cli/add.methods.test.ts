/** `agent-broker add` by OAuth and as an App, with this test as the browser. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ownersBrowser, startConsenting } from '../world/browser/consenting.ts';
import { leaksOf } from '../world/canary.ts';
import { commandHost, type Served, startServe } from '../world/command.ts';
import { APP_ID, INSTALLATION, startAppPlatform } from '../world/servers/app-platform.ts';
import { startGitHub } from '../world/servers/github-server.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const TOKEN = 'gho_CANARYoauth0123456789abcdefghij12345';
const SECRET = 'CANARY-client-0123456789-abcdefghij-secret';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
let served: Served;

const github = shared(() => startGitHub(new Map([[TOKEN, 'repo']]), { clientSecret: SECRET, token: TOKEN }));
const apps = shared(() => startAppPlatform());
beforeAll(async () => {
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: `${github.address},${apps.address}` };
  served = await startServe(['--no-sandbox'], { cwd: folder, env }, 'agent-broker plan');
});

const run = (words: readonly string[], env: Record<string, string> = {}) =>
  hosted(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env } });

describe('agent-broker add github', () => {
  test('--oauth prints what to register and the consent URL, waits, and prints whose account it is', async () => {
    const words = ['add', 'github', '--data', data, '--base-url', github.api, '--oauth', '--client-id', 'abc'];
    const missing = await run([...words, '--client-secret-env', 'NONE']);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('NONE')]);

    const setting = { cwd: folder, env: { AGENT_BROKER_DATA: data } };
    const env = { ...setting.env, GH_SECRET: SECRET };
    const { url, printed, ended } = await startConsenting([...words, '--client-secret-env', 'GH_SECRET'], {
      cwd: folder,
      env,
    });
    const { stderr } = printed();
    expect(url, stderr).toContain(`${github.url}/login/oauth/authorize?`);
    expect(stderr).toContain(`owner link --data ${data} signs it in`);
    // A second attempt with another client would use the first one: it is refused, with what to do.
    const other = await run([...words.slice(0, -1), 'another', '--client-secret-env', 'GH_SECRET'], {
      GH_SECRET: SECRET,
    });
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('has the client abc already')]);
    expect(other.stderr).toContain(`export governance.yaml --data ${data}`);
    expect(other.stderr).toMatch(/export governance\.yaml.*apply that file; or add a second platform with --id NAME/);
    const redirect = new URL(url).searchParams.get('redirect_uri')!;
    expect(redirect.replace(/[0-9a-f-]{36}$/, '')).toBe(`${served.url}/console/connected/`);
    expect(stderr).toContain(`with the redirect URI ${redirect}\n`);
    // Without the scopes that delete repositories or administer organisations.
    expect(new URL(url).searchParams.get('scope')).toBe('repo');

    const browser = await ownersBrowser(served, setting);
    const visit = await browser.get(url);
    expect(visit.text).toContain('The platform is connected.');
    expect(await ended, printed().stderr).toBe(0);
    const { stdout } = printed();
    expect(stdout).toContain('The credential is ann’s');
    for (const secret of [SECRET, TOKEN]) expect(leaksOf(secret, stdout + printed().stderr)).toEqual([]);

    // This platform takes OAuth, so a token is refused.
    const token = await run(['add', 'github', '--token-env', 'X', '--replace'], { X: TOKEN });
    expect([token.code, token.stderr]).toEqual([1, expect.stringContaining('takes OAuth')]);
    const both = await run(['add', 'github', '--token-env', 'X', '--oauth', '--replace'], { X: TOKEN });
    expect(both.code).toBe(2);
  });

  test('--app uses an existing App, seals its key in the broker, and prints where the App is installed', async () => {
    apps.reset();
    const json = (body: unknown) => ({
      status: 200,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });
    const installed = [{ id: Number(INSTALLATION), account: { login: 'acme' }, suspended_at: null }];
    apps.instead = (path) =>
      path === '/app'
        ? json({ name: 'Acme agents', html_url: `${apps.url}/github-apps/acme-agents` })
        : path === '/app/installations'
          ? json(installed)
          : undefined;
    writeFileSync(join(folder, 'app.pem'), apps.pem, { mode: 0o600 });
    const words = ['add', 'github', '--id', 'app', '--base-url', `${apps.url}/api/v3`, '--app', '--app-id', APP_ID];
    const wrong = await run([...words, '--key-file', 'app.pem', '--installation-id', '7']);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('under no number 7')]);
    const added = await run([...words, '--key-file', 'app.pem']);
    expect([added.code, added.stderr]).toEqual([0, '']);
    expect(added.stdout).toContain('Added app (github at');
    expect(added.stdout).toContain('The App is installed at acme');
    expect(added.stdout).not.toContain('BEGIN');
    expect((await run(['export'])).stdout).toContain('APP_PRIVATE_KEY');
    const other = await run([
      ...words.slice(0, -1),
      '99',
      '--key-file',
      'app.pem',
      '--label',
      'second',
      '--installation-id',
      '7',
    ]);
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining(`has the App ${APP_ID} already`)]);
  });
});
