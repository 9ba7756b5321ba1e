/** `agent-broker demo`, without a terminal, and with a person at a terminal. */
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { jsonPost } from '../world/agent.ts';
import { runCommand } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';
import { atTerminal, missingScript } from '../world/terminal.ts';

const temporary = newFolder();
const env = { TMPDIR: temporary };
const leftOvers = () => readdirSync(temporary).filter((name) => name.startsWith('agent-broker-demo-')).length;

test('without a terminal the held refund is approved and made, and two receipts verify', async () => {
  const { code, stdout } = await runCommand(['demo', '--json'], { cwd: temporary, env });
  expect(code).toBe(0);
  const { steps } = JSON.parse(stdout);
  expect(steps).toMatchObject([
    { read: { kind: 'answered', upstreamStatus: 200 } },
    { refused: { kind: 'denied', reason: 'endpoint_scope_mismatch' } },
    { held: { kind: 'held' } },
    { decided: { state: 'done', result: { status: 201, data: { payment: 'pay_1001', amount: 500 } } } },
    { receipt: { result: 'denied', path: '/issues/1' } },
    { receipt: { result: 'allowed', path: '/refunds', reason: 'approved', approval: { how: 'api' } } },
  ]);
  expect(leftOvers()).toBe(0);
});

describe.skipIf(missingScript)(`at a terminal${missingScript ? ` (skipped: ${missingScript})` : ''}`, () => {
  const demo = () => atTerminal(['demo'], { cwd: temporary, env });

  test('Enter approves', async () => {
    const terminal = demo();
    await terminal.shows('press Enter');
    terminal.type('\n');
    const { code, stdout } = await terminal.ended;
    expect(code, stdout).toBe(0);
    expect(stdout).toContain('made the call once: {"id":"ref_');
    expect(stdout).toMatch(/Of the refund, signed by key \S+: allowed POST \/refunds/);
    expect(leftOvers()).toBe(0);
  });

  test('the link signs in, and denying there ends the demo with the note', async () => {
    const terminal = demo();
    const shown = await terminal.shows('press Enter');
    const [, origin = '', token] = /(http:\S+)\/console\/sign-in#(sgn_\S+)/.exec(shown)!;
    const id = /as approval (\S+)\./.exec(shown)![1];
    const post = (path: string, body: object, cookie = '') =>
      fetch(origin + path, jsonPost(body, { origin, cookie, 'x-svc-csrf': '1' }));
    const cookie = (await post('/owner/sign-in', { token })).headers.get('set-cookie')!.split(';')[0]!;
    const denied = await post(`/owner/approvals/${id}/deny`, { note: 'Ask for a photo.' }, cookie);
    expect([denied.status, await denied.text()]).toEqual([200, expect.stringContaining('denied')]);
    const { code, stdout } = await terminal.ended;
    expect(code, stdout).toBe(0);
    expect(stdout).toContain('Denied (“Ask for a photo.”). The refund is never made.');
    expect(stdout).not.toContain('Of the refund, signed');
    expect(leftOvers()).toBe(0);
  });

  test('Ctrl-C ends the demo and removes its files', async () => {
    const terminal = demo();
    await terminal.shows('press Enter');
    expect(leftOvers()).toBe(1);
    terminal.type('\u0003');
    const { code, stdout } = await terminal.ended;
    expect(code).not.toBe(0);
    expect(stdout).toContain('Stopped.');
    expect(leftOvers()).toBe(0);
  });
});
