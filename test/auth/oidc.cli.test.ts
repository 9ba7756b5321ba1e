/** The command line beside an identity provider: it says where to sign in, and lets the operator in without it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BIN } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const data = newFolder();
/** Nobody listens there: the provider is not asked for any of this. */
const PROVIDER = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'broker', OIDC_CLIENT_SECRET: 'a secret' };

const start = (words: readonly string[], env: Record<string, string> = {}): ChildProcess =>
  spawn(process.execPath, [BIN, ...words], {
    cwd: data,
    env: { PATH: process.env.PATH!, AGENT_BROKER_DATA: data, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });

async function run(words: readonly string[]): Promise<string> {
  const child = start(words);
  let stdout = '';
  child.stdout!.on('data', (chunk) => {
    stdout += chunk;
  });
  expect(await new Promise((done) => child.on('close', done)), words.join(' ')).toBe(0);
  return stdout.trim();
}

let server: ChildProcess;
let greeting = '';
let url = '';
beforeAll(async () => {
  server = start(['serve', '--no-sandbox'], { ...PROVIDER, PORT: '0', DRAIN_SECONDS: '0', LOG_LEVEL: 'warn' });
  await new Promise<void>((ready, reject) => {
    server.stdout!.on('data', (chunk) => {
      greeting += chunk;
      if (greeting.includes('Next,')) ready();
    });
    server.once('exit', (code) => reject(new Error(`serve ended with ${code}`)));
  });
  url = /running at (\S+)/.exec(greeting)![1]!;
});
afterAll(async () => {
  const ended = new Promise((done) => server.once('exit', done));
  server.kill('SIGTERM');
  await ended;
});

test('the greeting leads to the sign-in page, and holds no link that signs anybody in', () => {
  expect(greeting).toContain(`${url}/console/sign-in\n`);
  expect(greeting).toContain('owners sign in at 127.0.0.1:9');
  expect(greeting).not.toMatch(/sgn_|within 15 minutes/);
});

test('owner add and owner link say where to sign in; owner token needs no provider', async () => {
  expect(await run(['owner', 'add', 'ann@acme.example', '--role', 'admin'])).toBe(
    'ann@acme.example is admin. Sign in at 127.0.0.1:9, from the console',
  );
  expect(await run(['owner', 'add', 'ann@acme.example', '--role', 'admin', '--forget-identity'])).toContain('is admin');
  expect(await run(['owner', 'link', '--email', 'ann@acme.example'])).toBe(`${url}/console/sign-in`);
  const token = await run(['owner', 'token', '--email', 'ann@acme.example']);
  const me = await fetch(`${url}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
  expect(await me.json()).toMatchObject({ email: 'ann@acme.example', sign_in: 'local' });
});
