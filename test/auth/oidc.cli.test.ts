import { beforeAll, expect, test } from 'vitest';
import { runCommand, startServe } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';

const data = newFolder();
/** Nothing listens at this address: none of these commands calls the provider. */
const PROVIDER = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'broker', OIDC_CLIENT_SECRET: 'a secret' };

async function run(words: readonly string[]): Promise<string> {
  const { code, stdout } = await runCommand(words, { cwd: data, env: { AGENT_BROKER_DATA: data } });
  expect(code, words.join(' ')).toBe(0);
  return stdout.trim();
}

let greeting = '';
let url = '';
beforeAll(async () => {
  const env = { AGENT_BROKER_DATA: data, ...PROVIDER };
  ({ greeting, url } = await startServe(['--no-sandbox'], { cwd: data, env }, 'Next,'));
});

test('the greeting leads to the sign-in page, and contains no sign-in link', () => {
  expect(greeting).toContain(`${url}/console/sign-in\n`);
  expect(greeting).toContain(`cannot open these links yet: ${url}/console/notices`);
  expect(greeting).toContain('owners sign in at 127.0.0.1:9');
  expect(greeting).not.toMatch(/sgn_|within 15 minutes/);
});

test('owner add and owner link name the sign-in page; owner token needs no provider', async () => {
  expect(await run(['owner', 'add', 'ann@acme.example', '--role', 'admin'])).toBe(
    'ann@acme.example is admin. Sign in at 127.0.0.1:9, from the console',
  );
  expect(await run(['owner', 'add', 'ann@acme.example', '--role', 'admin', '--forget-identity'])).toContain('is admin');
  expect(await run(['owner', 'link', '--email', 'ann@acme.example'])).toBe(`${url}/console/sign-in`);
  const token = await run(['owner', 'token', '--email', 'ann@acme.example']);
  const me = await fetch(`${url}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
  expect(await me.json()).toMatchObject({ email: 'ann@acme.example', sign_in: 'local' });
});
