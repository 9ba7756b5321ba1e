/** `agent-broker add` of platforms that are often self-hosted, at an address other than the public one. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { placeOf } from '../../bin/add-entry.ts';
import { commandHost, startServe } from '../world/command.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const TOKEN = 'CANARY-model-0123456789-abcdefghij';
const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');

const upstream = shared(() => startUpstream());
beforeAll(async () => {
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: upstream.address };
  await startServe(['--no-sandbox'], { cwd: folder, env }, 'agent-broker plan');
});

const add = (...words: string[]) =>
  hosted(['add', ...words, '--token-stdin'], {
    cwd: folder,
    env: { AGENT_BROKER_DATA: data },
    input: `${TOKEN}\n`,
  });

describe('agent-broker add', () => {
  test.each([
    ['openai', 'authorization', `Bearer ${TOKEN}`, 'inference'],
    ['anthropic', 'x-api-key', TOKEN, 'inference'],
    ['npm', 'authorization', `Bearer ${TOKEN}`, 'publish'],
    ['kubernetes', 'authorization', `Bearer ${TOKEN}`, 'operate'],
  ])(
    '%s at another address: tests the connection there with the credential in %s, and prints what agents may be granted',
    async (name, header, value, preset) => {
      upstream.seen.length = 0;
      const added = await add(name, '--base-url', `${upstream.url}/${name}`);
      expect(added.code, added.stderr).toBe(0);
      expect(added.stdout).toContain(`Added ${name} (${name} at ${upstream.url}/${name}), connection "${name}"`);
      expect(added.stdout).toMatch(new RegExp(`^ {2}${preset} `, 'm'));
      expect(added.stdout + added.stderr).not.toContain(TOKEN);
      expect(upstream.seen.map(({ headers }) => headers[header])).toEqual([value]);
    },
  );

  const JIRA = `ann@acme.example:${TOKEN}`;
  /** The request that tests the credential, and how the platform answers a valid and an invalid credential. */
  const RESTS: {
    name: string;
    secret?: string;
    sent: string;
    preset: string;
    asked: string;
    says?: object;
    account?: string;
    refuses: [status: number, body: object];
  }[] = [
    {
      name: 'slack',
      sent: `Bearer ${TOKEN}`,
      preset: 'post',
      asked: '/slack/auth.test',
      says: { ok: true, team: 'Acme' },
      account: 'Acme',
      refuses: [200, { ok: false, error: 'invalid_auth' }],
    },
    {
      name: 'gmail',
      sent: `Bearer ${TOKEN}`,
      preset: 'send',
      asked: '/gmail/gmail/v1/users/me/profile',
      says: { emailAddress: 'ann@acme.example' },
      account: 'ann@acme.example',
      refuses: [401, { error: { code: 401, status: 'UNAUTHENTICATED' } }],
    },
    {
      name: 'notion',
      sent: `Bearer ${TOKEN}`,
      preset: 'write',
      asked: '/notion/users/me',
      says: { bot: { workspace_name: 'Acme' } },
      account: 'Acme',
      refuses: [401, { object: 'error', code: 'unauthorized' }],
    },
    // These platforms have no endpoint that names the account of this kind of credential: the test requests the base address.
    {
      name: 'jira',
      secret: JIRA,
      sent: `Basic ${Buffer.from(JIRA).toString('base64')}`,
      preset: 'issues',
      asked: '/jira',
      refuses: [401, { message: 'Client must be authenticated' }],
    },
    {
      name: 'google-calendar',
      sent: `Bearer ${TOKEN}`,
      preset: 'events',
      asked: '/google-calendar',
      refuses: [401, { error: { code: 401 } }],
    },
    { name: 'linear', sent: TOKEN, preset: 'issues', asked: '/linear', refuses: [401, { errors: [] }] },
    { name: 'stripe', sent: `Bearer ${TOKEN}`, preset: 'refunds', asked: '/stripe', refuses: [401, { error: {} }] },
  ];
  test.each(RESTS)(
    '$name: a refused credential creates nothing; an accepted credential prints whose account it is',
    async ({ name, secret = TOKEN, sent, preset, asked, says = {}, account, refuses }) => {
      const json = (status: number, body: object) => {
        upstream.seen.length = 0;
        upstream.answer = (_, response) =>
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
        return hosted(['add', name, '--base-url', `${upstream.url}/${name}`, '--token-stdin'], {
          cwd: folder,
          env: { AGENT_BROKER_DATA: data },
          input: `${secret}\n`,
        });
      };
      const refused = await json(...refuses);
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toMatch(/refused the credential[\s\S]*Nothing was kept/);
      // Succeeds only when the first attempt left nothing behind.
      const added = await json(200, says);
      upstream.answer = undefined;
      expect(added.code, added.stderr).toBe(0);
      expect(added.stdout).toContain(`Added ${name} (${name} at ${upstream.url}/${name}), connection "${name}"`);
      expect(added.stdout).toContain(account ? `The credential is ${account}’s` : 'did not refuse the credential');
      expect(added.stdout).toMatch(new RegExp(`^ {2}${preset} `, 'm'));
      expect(refused.stderr + added.stdout + added.stderr).not.toContain(TOKEN);
      expect(upstream.seen.map(({ target, headers }) => [target, headers.authorization])).toEqual([[asked, sent]]);
    },
  );

  test('s3 signs for the region of its address', async () => {
    const key = JSON.stringify({ access_key_id: 'AKIACANARY0123456789', secret_access_key: TOKEN });
    upstream.seen.length = 0;
    const words = ['add', 's3', '--base-url', upstream.url, '--token-stdin'];
    const added = await hosted(words, { cwd: folder, env: { AGENT_BROKER_DATA: data }, input: `${key}\n` });
    expect(added.code, added.stderr).toBe(0);
    expect(added.stdout + added.stderr).not.toContain(TOKEN);
    expect(upstream.seen[0]!.headers.authorization).toContain('/us-east-1/s3/aws4_request');
    expect(placeOf('s3', 'https://s3.eu-central-1.amazonaws.com').overrides.auth).toMatchObject({
      region: 'eu-central-1',
    });
  });

  test('kubernetes has no public address: --base-url is required', async () => {
    const unnamed = await add('kubernetes', '--id', 'other');
    expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('--base-url')]);
  });
});
