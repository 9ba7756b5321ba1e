/** `agent-broker inbox`: what waits is listed and shown, and text of agents is escaped for the terminal. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { MIN, shortIds } from '../../bin/short-id.ts';
import { cut, line, styled, widthOf } from '../../bin/terminal/line.ts';
import { jsonPost, jsonRequest } from '../world/agent.ts';
import { commandHost, startServe } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';
import { actingIn, atTerminal, missingScript } from '../world/terminal.ts';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
const env = { AGENT_BROKER_DATA: data };
const run = (...words: string[]) => hosted(words, { cwd: folder, env });

/** Escape, an OSC 8 link, a bell, C1's CSI, right-to-left override, zero width, a line separator, and Cyrillic "а". */
const HOSTILE = 'p\u0430ypal \u001b[2J\u001b]8;;http://evil.example\u0007\u009b31m\u202elive\u200b\u2028\u{e0041}';

let url = '';
let token = '';
beforeAll(async () => {
  ({ url } = await startServe([], { cwd: folder, env }));
  token = (await run('owner', 'token')).stdout.trim();
});

const owner = async (method: string, path: string, body?: object) => {
  const response = await fetch(url + path, jsonRequest(method, body, { authorization: `Bearer ${token}` }));
  return { status: response.status, body: (await response.json()) as Record<string, string> };
};

async function refund(
  amount: number,
  more: object = {},
  profile = join(data, 'profiles', 'default.json'),
): Promise<string> {
  const agent = (await run('token', '--profile', profile)).stdout.trim();
  const response = await fetch(
    `${url}/v1/actions`,
    jsonPost(
      {
        platform: 'sandbox',
        endpoint: '/refunds',
        method: 'POST',
        scope: 'sandbox:refunds.create',
        data: { payment: 'pay_1001', amount, reason: 'arrived broken' },
        ...more,
      },
      { authorization: `Bearer ${agent}` },
    ),
  );
  const { approval_id } = (await response.json()) as { approval_id: string };
  expect(response.status).toBe(202);
  return approval_id;
}

const inboxJson = async () =>
  JSON.parse((await run('inbox', '--json')).stdout) as {
    id: string;
    short_id: string;
    kind: string;
    item: Record<string, unknown>;
  }[];

describe('the inbox', () => {
  test('is empty at first, and prints so', async () => {
    expect(await run('inbox')).toEqual({ code: 0, stdout: 'Nothing waits.\n', stderr: '' });
    expect(await inboxJson()).toEqual([]);
  });

  test('lists held calls, access requests and registrations, oldest first, one line each', async () => {
    const held = await refund(500);
    const profile = join(folder, 'asker.json');
    await run('agent', 'create', 'asker', '--out', profile, '--grant', 'sandbox=sandbox:issues.read');
    const agent = (await run('token', '--profile', profile)).stdout.trim();
    const asked = await fetch(
      `${url}/v1/access-request`,
      jsonPost(
        { platform: 'sandbox', scope: 'sandbox:mail.delete', reason: HOSTILE },
        { authorization: `Bearer ${agent}` },
      ),
    );
    expect(asked.status, await asked.clone().text()).toBeLessThan(300);
    const me = (await owner('GET', '/owner/me')).body;
    const registered = await fetch(
      `${url}/v1/register`,
      jsonPost({
        agent_name: 'newcomer',
        agent_description: HOSTILE,
        owner_id: me.id,
        requested_scopes: [{ platformId: 'sandbox', scopes: ['sandbox:issues.read'] }],
      }),
    );
    expect(registered.status, await registered.clone().text()).toBeLessThan(300);
    const { code, stdout } = await run('inbox');
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(/^ID +LEFT +WHO +WHAT +HELD BY$/);
    expect(lines[1]).toMatch(
      new RegExp(
        `^${held.slice(0, 6)}\\S*  2[34] h  sandbox-agent  refund 500 \\(no currency given\\) of payment pay_1001 .* on sandbox +rule refunds-wait$`,
      ),
    );
    expect(lines[2]).toMatch(/asker +asks for sandbox:mail.delete on sandbox +It is not granted$/);
    expect(lines[3]).toMatch(/newcomer +asks to become an agent +nobody checked who it is$/);
    expect((await inboxJson()).map(({ kind }) => kind)).toEqual(['approval', 'access', 'registration']);
  });

  test('show prints each item in full, by the beginning of its id', async () => {
    for (const { id, short_id, kind } of await inboxJson()) {
      const { code, stdout, stderr } = await run('inbox', 'show', short_id);
      expect(code, stderr).toBe(0);
      expect(stdout).toContain({ approval: 'wants to', access: 'asks for', registration: 'asks to become' }[kind]);
      expect(actingIn(stdout)).toEqual([]);
      const whole = JSON.parse((await run('inbox', 'show', id.toUpperCase(), '--json')).stdout);
      expect([whole.id, whole.kind]).toEqual([id, kind]);
    }
  });

  test('show prints the whole request body, and its hash', async () => {
    const [{ id, item }] = (await inboxJson()) as [Awaited<ReturnType<typeof inboxJson>>[number]];
    const { stdout } = await run('inbox', 'show', id);
    const margin = stdout.split('\n').filter((each) => each.startsWith('│ '));
    expect(
      JSON.parse(
        margin
          .slice(2)
          .map((each) => each.slice(2))
          .join('\n'),
      ),
    ).toEqual({
      payment: 'pay_1001',
      amount: 500,
      reason: 'arrived broken',
    });
    expect(stdout).toContain(item.request_hash);
    expect(stdout).toMatch(/Held by +policy "sandbox", refunds-wait requires an approval/);
  });

  test.each([
    ['too short', ['abc'], 2, `${MIN} characters`],
    ['no id', ['hello!'], 2, 'is no id'],
    ['of nothing that waits', ['00000000-0000-4000-8000-000000000000'], 1, 'No pending item'],
  ])('an id that is %s is refused', async (_what, words, code, message) => {
    const shown = await run('inbox', 'show', ...words);
    expect([shown.code, shown.stdout, shown.stderr]).toEqual([code, '', expect.stringContaining(message)]);
  });
});

describe('text that agents write', () => {
  test('is escaped in names, reasons, bodies, queries, JSON and errors', async () => {
    // Without the characters that the broker refuses in names.
    const name = HOSTILE.replaceAll(/[\p{Cc}\p{Zl}]/gu, '');
    const scopes = ['sandbox:refunds.create', 'sandbox:issues.read'];
    const invite = { agent_name: name, policy: 'sandbox', grants: [{ platformId: 'sandbox', scopes }] };
    const { bind_secret: secret = '' } = (await owner('POST', '/owner/invites', invite)).body;
    const created = await run('agent', 'create', 'hostile', '--out', join(folder, 'h.json'), '--invite', secret);
    expect(created.code, created.stderr).toBe(0);
    const id = await refund(
      7,
      {
        data: { payment: 'pay_1001', amount: 7, reason: HOSTILE, [HOSTILE]: [HOSTILE] },
        reason: `${HOSTILE}\n${' '.repeat(300)}x\n\n\n\n\n\n\n\nHeld by     nobody`,
      },
      join(folder, 'h.json'),
    );
    const printed = await Promise.all([
      run('inbox'),
      run('inbox', '--json'),
      run('inbox', 'show', id),
      run('inbox', 'show', id, '--json'),
      run('agent', 'list'),
      run('agent', 'list', '--json'),
      run('agent', 'create', name),
      run('export'),
    ]);
    for (const { stdout, stderr } of printed.slice(0, -1)) expect(actingIn(stdout + stderr)).toEqual([]);
    const [list, , shown] = printed;
    expect(list.stdout).toContain('⟦U+202E⟧');
    expect(shown.stdout).toContain('⟦U+001B⟧');
    expect(list.stdout).toContain('(odd letters) p\u0430ypal');
    expect(shown.stdout).toMatch(/mixes Latin and Cyrillic letters/);
    // Text of the agent never begins a line of the output.
    expect(shown.stdout).not.toMatch(/^Held by +nobody/m);
    expect(shown.stdout).toContain('⟦300 spaces⟧');
    expect(shown.stdout).toContain('⟦7 empty lines⟧');
    // JSON output escapes, but has the same values.
    const items = JSON.parse(printed[1]!.stdout) as { item: { agent?: { name: string } } }[];
    expect(items.map(({ item }) => item.agent?.name)).toContain(name);
    const whole = JSON.parse(printed[3]!.stdout);
    expect(whole.item.request.body).toEqual({ payment: 'pay_1001', amount: 7, reason: HOSTILE, [HOSTILE]: [HOSTILE] });
    // Redirected, `export` prints the exact document, so it is not escaped.
    expect(printed.at(-1)!.stdout).toContain('agents:');
  });
});

describe.skipIf(missingScript)(`at a terminal${missingScript ? ` (skipped: ${missingScript})` : ''}`, () => {
  test('lines fit its width, in colour, without other control characters', async () => {
    for (const columns of [60, 100]) {
      const { code, stdout } = await atTerminal(['inbox'], { cwd: folder, env, columns }).ended;
      expect(code, stdout).toBe(0);
      expect(stdout).toContain('\u001b[1m');
      expect(actingIn(stdout)).toEqual([]);
      const rows = stdout
        .replaceAll(/\u001b\[\d+m/g, '')
        .split('\r\n')
        .filter((each) => /^[0-9a-f]{6}/.test(each));
      expect(rows.length).toBeGreaterThan(3);
      expect(rows.filter((each) => widthOf(each) > columns)).toEqual([]);
    }
  });

  test('NO_COLOR removes the colour and keeps the text', async () => {
    const { stdout } = await atTerminal(['inbox'], { cwd: folder, env: { ...env, NO_COLOR: '1' } }).ended;
    expect(stdout).toContain('refund 500');
    expect(stdout).not.toContain('\u001b');
  });

  test('text of an agent that is wider than the terminal wraps behind its margin', async () => {
    const id = await refund(8, { reason: `${'word '.repeat(60)}SHA-256 nothing` });
    const { stdout } = await atTerminal(['inbox', 'show', id], { cwd: folder, env, columns: 50 }).ended;
    const lines = stdout.replaceAll(/\u001b\[\d+m/g, '').split('\r\n');
    expect(lines.filter((each) => each.includes('word '))).toHaveLength(Math.ceil((60 * 5 + 15) / 48));
    expect(lines.filter((each) => each.includes('word ') && !each.startsWith('│ '))).toEqual([]);
    expect(lines.filter((each) => widthOf(each) > 50 && !each.startsWith('Decide: '))).toEqual([]);
  });
});

describe('formatting', () => {
  test('short ids are as long as they must be to be unique', () => {
    expect([...shortIds(['aaaaaaaa-1', 'aaaaaaaa-2', 'bbbbbbbb-1'])]).toEqual([
      ['aaaaaaaa-1', 'aaaaaaaa-1'],
      ['aaaaaaaa-2', 'aaaaaaaa-2'],
      ['bbbbbbbb-1', 'bbbbbb'],
    ]);
  });

  test('lines are cut by columns, not by characters, and keep their style', () => {
    expect(widthOf('日本語 👍 e\u0301')).toBe(11);
    expect(cut(line`${'日本語'}`, 5).text).toBe('日本…');
    expect(cut(line`a${styled('bad', 'bcdef')}`, 4).print(true)).toBe('a\u001b[31mbc\u001b[39m…');
    expect(line`${'\u001b[31m'}`.print(true)).toBe('⟦U+001B⟧[31m');
  });

  test('the check of this file finds control characters', () => {
    expect(actingIn(readFileSync(import.meta.filename, 'utf8'))).toEqual([]);
    expect(actingIn(`a\u001b[31mb\u001b[2Jc\u202e`)).toEqual(['\u001b', '\u202e']);
  });
});
