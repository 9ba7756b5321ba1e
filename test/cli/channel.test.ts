/** Notification channels on the command line: added, listed, tried, removed; a secret is never printed. */
import { beforeAll, expect, test } from 'vitest';
import { commandHost, startServe } from '../world/command.ts';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const folder = newFolder();
const hosted = commandHost();
const env = { AGENT_BROKER_DATA: folder };
const run = (words: string[], input?: string) =>
  hosted(['channel', ...words], { cwd: folder, env, ...(input !== undefined && { input }) });

const server = shared(() => startChannelServer());
beforeAll(() => startServe([], { cwd: folder, env: { ...env, AGENT_BROKER_ALLOW_PRIVATE: server.address } }));

test('a channel is added with its rules, listed, tried and removed', async () => {
  const hook = await run([
    'add',
    'hook',
    'webhook',
    `url=${server.url}/hook`,
    '--quiet',
    '22:00-07:00',
    '--zone',
    'UTC',
  ]);
  expect(hook.code, hook.stderr).toBe(0);
  expect(hook.stdout).toMatch(/shown this once: whsec_/);
  const token = 'tk_0123456789';
  const phone = [
    'add',
    'phone',
    'ntfy',
    `server=${server.url}`,
    'topic=acme',
    '--event',
    'call_held',
    '--secret-stdin',
  ];
  expect((await run(phone, `${token}\n`)).code).toBe(0);
  const listed = await run(['list']);
  expect(listed.stdout).toMatch(/hook +webhook +active +everything not 22:00 to 07:00 UTC/);
  expect(listed.stdout).toMatch(/phone +ntfy +active +call_held/);
  expect((await run(['list', '--json'])).stdout).not.toContain(token);
  const tried = await run(['test']);
  expect(tried.stdout).toMatch(/hook \(webhook\): sent[\s\S]*phone \(ntfy\): sent/);
  expect(server.seen.map(({ target }) => target)).toEqual(['/hook', '/']);
  expect(server.seen[1]!.headers.authorization).toBe(`Bearer ${token}`);
  server.answer = (_request, response) => response.writeHead(503).end();
  const failed = await run(['test', 'phone']);
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('not sent. It answered 503.')]);
  expect((await run(['list'])).stdout).toContain('failing: It answered 503.');
  expect((await run(['remove', 'phone'])).stdout).toContain('The channel phone is removed.');
  const gone = await run(['test', 'fone']);
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('There is no channel fone.')]);
});

test('a Slack channel is added with its signing secret and people, and prints the URL for button clicks', async () => {
  const slack = ['add', 'ops', 'slack', 'channel=C0123456789', 'people=U0123456789:ann@acme.example'];
  const added = await hosted(
    ['channel', ...slack, `server=${server.url}`, '--secret-env', 'TOKEN', '--signing-secret-env', 'SIGNING'],
    { cwd: folder, env: { ...env, TOKEN: 'xoxb-1111111111', SIGNING: 'c'.repeat(32) } },
  );
  expect(added.code, added.stderr).toBe(0);
  expect(added.stdout).toMatch(/URL for clicks on buttons: \S+\/notify\/slack\/[0-9a-f-]{36}/);
  expect(added.stdout).not.toMatch(/xoxb|cccc/);
  expect((await run(['add', 'x', 'slack', 'people=ann'])).stderr).toContain('Write people as id:address');
  expect((await run(['remove', 'ops'])).code).toBe(0);
});

test('wrong settings are refused with what to write', async () => {
  const usage = await run(['add', 'x', 'ntfy', 'acme']);
  expect(usage.stderr).toContain('write key=value');
  for (const [setting, option] of [
    ['events=call_held', '--event'],
    ['remind_minutes=15', '--remind'],
    ['secret=CANARY', '--secret-stdin'],
    ['name=y', 'first argument'],
  ] as const) {
    const refused = await run(['add', 'x', 'webhook', `url=${server.url}/hook`, setting]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(option)]);
    expect(refused.stderr).not.toContain('CANARY');
  }
  const unknown = await run(['add', 'x', 'pigeon']);
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('kind')]);
  const misplaced = ['add', 'x', 'webhook', '--url', `${server.url}/hook`, '--owner-token', 'CANARY'];
  const before = server.seen.length;
  expect(await run(misplaced)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`is a setting: write url=${server.url}/hook`),
  });
  expect(server.seen.length).toBe(before);
});
