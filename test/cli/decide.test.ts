/** The commands `approve`, `correct` and `deny`: the decision is bound to what was shown, and the output states the result. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { jsonPost } from '../world/agent.ts';
import { startCliWorld } from '../world/cli-world.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { actingIn, atTerminal, missingScript } from '../world/terminal.ts';
import { shared } from '../world/world.ts';

const cli = shared(() => startCliWorld());
beforeAll(() => cli.agent('clerk'));
afterEach(() => {
  cli.upstream.answer = undefined;
});

const written = () => cli.upstream.seen.filter(({ method }) => method === 'POST').length;
const stateOf = async (id: string) => (await cli.owner('GET', `/owner/approvals/${id}`)).body;

describe('approve', () => {
  test('makes the call, prints the platform’s answer, and exits 0', async () => {
    const id = await cli.hold('clerk');
    const before = written();
    const { code, stdout, stderr } = await cli.run('approve', id.slice(0, 8), '--yes');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^\w+ {2}clerk: .+ on GitHub. Approved by \S+@\S+ and made: .*status 200, .*\n$/);
    expect(written()).toBe(before + 1);
    expect(await stateOf(id)).toMatchObject({ status: 'approved', how: 'api' });
  });

  test('correct prints the corrected and the original request, refuses invalid corrections, and approve makes the corrected call', async () => {
    const id = await cli.hold('clerk', { data: { title: 'Two cups' } });
    const { code, stdout, stderr } = await cli.run('correct', id.slice(0, 8), '--body', '{"title": "One cup"}');
    expect([code, stderr]).toEqual([0, '']);
    expect((await cli.run('inbox', 'show', id)).stdout).toContain('The agent had requested:');
    const wrongs: [string[], number, string][] = [
      [[], 2, '--body, or --endpoint'],
      [['--body', '[1]'], 2, 'takes a JSON object'],
      [
        ['--body', '{"order": 98765432109876543210}'],
        2,
        '/order: the number 98765432109876543210 would be sent as another',
      ],
      [['--body', '{"title": "One", "title": "Two"}'], 2, '/title: this member name is there twice'],
      [['--body', '@nowhere.json'], 1, 'cannot be read'],
      [['--body', '{"title": "One cup"}'], 1, 'already'],
      [['--endpoint', '/user/keys'], 1, 'would be refused'],
    ];
    for (const [words, exit, said] of wrongs) {
      const refused = await cli.run('correct', id, ...words);
      expect([refused.code, refused.stderr], words.join(' ')).toEqual([exit, expect.stringContaining(said)]);
    }
    expect((await cli.json('correct', id, '--body', '{"title": "One cup", "body": "x"}')).request.body).toEqual({
      title: 'One cup',
      body: 'x',
    });
    await cli.run('correct', id, '--body', '{"title": "One cup"}');
    expect(stdout).toMatch(
      /"title": "One cup"[\s\S]*Corrected by \S+@\S+\. The agent had requested:[\s\S]*"title": "Two cups"/,
    );
    expect((await cli.run('approve', id, '--yes')).code).toBe(0);
    expect(JSON.parse(cli.upstream.seen.at(-1)!.body)).toEqual({ title: 'One cup' });
  });

  test('of a call that several people have to approve says so, exits 0, and does not wait for the platform', async () => {
    const rule = { name: 'two', effect: 'require_approval', methods: ['POST'], approvers: 2 };
    expect((await cli.owner('POST', '/owner/guardrails', { guardrails: [rule] })).status).toBe(200);
    const id = await cli.hold('clerk');
    await cli.owner('POST', '/owner/guardrails', { guardrails: [] });
    expect((await cli.run('inbox', 'show', id)).stdout).toMatch(
      /Approvers +2 people have to approve; nobody has yet\./,
    );
    const before = written();
    const { code, stdout, stderr } = await cli.run('approve', id, '--yes');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('Your approval is recorded: 1 of 2 people have approved.');
    expect(written()).toBe(before);
    expect((await cli.run('inbox', 'show', id)).stdout).toMatch(/2 people have to approve; 1 has: \S+@\S+\./);
    expect((await cli.run('deny', id, '--yes')).code).toBe(0);
  });

  test('with --next makes a standing approval, which standing list shows with who gave it and when, and standing revoke ends', async () => {
    const id = await cli.hold('clerk');
    const approved = await cli.run('approve', id, '--next', '2', '--for', '1h', '--yes');
    expect(approved.code, approved.stderr).toBe(0);
    const [title = '', row = ''] = (await cli.run('standing', 'list')).stdout.split('\n');
    expect(title).toMatch(/^ID +AGENT +CALL +LEFT +UNTIL +STATUS +APPROVED BY +AT *$/);
    const moment = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d[+-]\\d\\d:\\d\\d';
    expect(row).toMatch(new RegExp(`^\\w+ +clerk +.+ +2 of 2 +${moment} +in force +owner@\\S+ +${moment} *$`));
    const revoked = await cli.run('standing', 'revoke', row.split(' ')[0]!);
    expect([revoked.code, revoked.stdout]).toEqual([0, expect.stringContaining('Revoked.')]);
    expect((await cli.run('standing', 'list')).stdout).toContain('There are no standing approvals in force.');
  });

  test('a limit of a member that is no number is refused, not left out', async () => {
    const id = await cli.hold('clerk');
    const limited = ['--next', '2', '--for', '1h', '--free', '/title=500', '--yes'];
    const { code, stdout } = await cli.run('approve', id, ...limited);
    expect([code, stdout]).toEqual([1, expect.stringContaining('/title is no number, so it has no limit')]);
    expect(await stateOf(id)).toMatchObject({ status: 'pending' });
    await cli.run('deny', id, '--yes');
  });

  test('exits 1 when the platform refuses the approved call', async () => {
    cli.upstream.answer = (_request, response) => response.writeHead(404).end();
    const id = await cli.hold('clerk');
    const { code, stdout } = await cli.run('approve', id, '--yes');
    expect(code).toBe(1);
    expect(stdout).toContain('the platform refused it: status 404');
  });

  test('decides nothing without a terminal or --yes, or when one of the ids is wrong', async () => {
    const id = await cli.hold('clerk');
    const unasked = await cli.run('approve', id);
    expect([unasked.code, unasked.stdout, unasked.stderr]).toEqual([2, '', expect.stringContaining('--yes')]);
    const wrong = await cli.run('approve', id, '00000000-0000-4000-8000-000000000000', '--yes');
    expect([wrong.code, wrong.stdout]).toEqual([1, '']);
    expect(await stateOf(id)).toMatchObject({ status: 'pending' });
    await cli.run('deny', id, '--yes');
  });

  test('decides several calls one by one, with one result each', async () => {
    const ids = [await cli.hold('clerk'), await cli.hold('clerk', { data: { title: 'Another' } })];
    const before = written();
    const results = await cli.json('approve', ...ids, '--yes');
    expect(results.map(({ id, ok }: { id: string; ok: boolean }) => [id, ok])).toEqual(ids.map((id) => [id, true]));
    expect(written()).toBe(before + 2);
  });

  test('of two concurrent approvals one succeeds, and the other names who decided', async () => {
    const id = await cli.hold('clerk');
    const before = written();
    const approve = () => cli.runApart('approve', id, '--yes');
    const [one, two] = await Promise.all([approve(), approve()]);
    expect([one.code, two.code].toSorted()).toEqual([0, 1]);
    const late = one.code === 0 ? two : one;
    expect(late.stdout + late.stderr).toMatch(/approved already by \S+@|No pending item/);
    expect(written()).toBe(before + 1);
  });

  test('a request that changed after it was shown is not approved', async () => {
    const id = await cli.hold('clerk');
    const before = written();
    // A proxy that shows another request hash than the stored one.
    const between = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const { authorization = '' } = request.headers;
      const answer = await fetch(cli.url() + request.url, {
        method: request.method!,
        headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body }),
      });
      const text = await answer.text();
      const other =
        request.method === 'GET'
          ? text.replace(/("request_hash":")(.)/, (_, name, digit) => name + (digit === '0' ? '1' : '0'))
          : text;
      const id = answer.headers.get('x-correlation-id')!;
      response.writeHead(answer.status, { 'content-type': 'application/json', 'x-correlation-id': id }).end(other);
    });
    const port = await listenOnLoopback(between);
    const token = (await cli.run('owner', 'token')).stdout.trim();
    const url = `http://127.0.0.1:${port}`;
    const { code, stdout } = await cli.run('approve', id, '--yes', '--url', url, '--owner-token', token);
    expect([code, stdout]).toEqual([1, expect.stringContaining('The item has changed since it was shown')]);
    expect([written(), (await stateOf(id)).status]).toEqual([before, 'pending']);
    await cli.run('deny', id, '--yes');
  });

  test('--no-wait returns before the call is answered', async () => {
    let answer = () => {};
    cli.upstream.answer = (_request, response) => {
      answer = () => response.end('{}');
    };
    const first = await cli.hold('clerk');
    const began = performance.now();
    const left = await cli.run('approve', first, '--yes', '--no-wait');
    expect([left.code, left.stdout]).toEqual([0, expect.stringContaining('The call is under way.')]);
    // Without --no-wait, the broker would have waited for 15 seconds.
    expect(performance.now() - began).toBeLessThan(12_000);
    answer();
    await expect.poll(async () => (await stateOf(first)).executed_at).not.toBeNull();
  });
});

describe('deny', () => {
  test('records the reason for the agent, and no call is made', async () => {
    const id = await cli.hold('clerk');
    const before = written();
    const reason = 'Ask \u001b[31mme first';
    const { code, stdout } = await cli.run('deny', id, '--reason', reason, '--yes');
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^\w+ {2}clerk: .* Denied.*\. The call is never made\.\n$/),
    ]);
    expect(await stateOf(id)).toMatchObject({ status: 'denied', note: reason });
    expect(written()).toBe(before);
  });

  test('--json prints one result per id with its new state, and exits 1 when one was refused', async () => {
    const id = await cli.hold('clerk');
    const before = written();
    const results = await cli.json('deny', id, '--reason', 'not \u202e now', '--yes');
    expect(results).toMatchObject([{ id, ok: true, answer: { status: 'denied', note: 'not \u202e now' } }]);
    const raw = await cli.run('deny', await cli.hold('clerk'), '--reason', 'not \u202e now', '--yes', '--json');
    expect(raw.stdout).not.toContain('\u202e');
    const again = await cli.run('deny', id, '--yes', '--json');
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(written()).toBe(before);
  });
});

describe('access requests and registrations', () => {
  const request = async (scope: string | undefined) => {
    const bearer = (await cli.run('token', '--profile', join(cli.folder, 'clerk.json'))).stdout.trim();
    await fetch(
      `${cli.url()}/v1/access-request`,
      jsonPost(
        { platform: 'codehost', ...(scope && { scope }), reason: 'to read code' },
        { authorization: `Bearer ${bearer}` },
      ),
    );
    const waiting = await cli.json('inbox');
    return waiting.find(({ kind }: { kind: string }) => kind === 'access').id as string;
  };

  test('an access request is approved with the requested scopes, and with --expires', async () => {
    const plain = await request('codehost:contents.read');
    const wrong = await cli.run('approve', plain, '--yes', '--name', 'x');
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining('--name says nothing about this')]);
    const { code, stdout } = await cli.run('approve', plain, '--yes', '--expires', '30d');
    expect([code, stdout]).toEqual([0, expect.stringContaining('Granted')]);
    const { grants } = (await cli.owner('GET', `/owner/agents/${await idOf('clerk')}/grants`)).body;
    expect(grants[0].scopes).toContain('codehost:contents.read');
    expect(Date.parse(grants[0].expires_at) - Date.now()).toBeGreaterThan(29 * 24 * 3600_000);
  });

  test('a registration is approved, with another name or fewer scopes when needed, or rejected', async () => {
    const me = (await cli.owner('GET', '/owner/me')).body;
    const registered = async (agent_name: string, requested_scopes: object[] = []) => {
      const response = await fetch(
        `${cli.url()}/v1/register`,
        jsonPost({ agent_name, owner_id: me.id, requested_scopes }),
      );
      expect(response.status).toBeLessThan(300);
      const waiting = await cli.json('inbox');
      return waiting.find(({ kind }: { kind: string }) => kind === 'registration').id as string;
    };
    const same = await registered('clerk');
    const refused = await cli.run('approve', same, '--yes');
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('--name')]);
    const named = await cli.run('approve', same, '--yes', '--name', 'clerk two');
    expect([named.code, named.stdout]).toEqual([0, expect.stringContaining('it is an agent now')]);
    const scopes = ['codehost:issues.read', 'codehost:issues.write', 'codehost:contents.read'];
    const narrow = await registered('reader', [{ platformId: 'codehost', scopes }]);
    const more = await cli.run('approve', narrow, '--yes', '--scopes', 'issues.read,codehost:pulls.read');
    expect([more.code, more.stdout]).toEqual([1, expect.stringContaining('It does not ask for codehost:pulls.read.')]);
    const less = await cli.run(
      ...['approve', narrow, '--yes', '--scopes', 'issues.read,codehost:contents.read on codehost'],
    );
    expect(less.code, less.stdout).toBe(0);
    const { grants } = (await cli.owner('GET', `/owner/agents/${await idOf('reader')}/grants`)).body;
    expect(grants.map((one: { scopes: string[] }) => one.scopes.toSorted())).toEqual([[scopes[2], scopes[0]]]);
    const other = await registered('stranger');
    const told = await cli.run('deny', other, '--yes', '--reason', 'no');
    expect([told.code, told.stdout]).toEqual([1, expect.stringContaining('leave out --reason')]);
    const rejected = await cli.run('deny', other, '--yes');
    expect([rejected.code, rejected.stdout]).toEqual([0, expect.stringContaining('Rejected')]);
    const [one] = [await registered('first of two'), await registered('second of two')];
    const held = await cli.hold('clerk');
    const mixed = await cli.run('deny', one, held, '--network', '--yes');
    expect([mixed.code, mixed.stderr]).toEqual([1, expect.stringContaining('no agent that registers itself')]);
    const both = await cli.run('deny', one, '--network', '--yes');
    expect([both.code, both.stdout]).toEqual([0, 'Rejected 2.\n']);
    await cli.run('deny', held, '--yes');
    expect(await cli.json('inbox')).toEqual([]);
  });

  const idOf = async (name: string) =>
    (await cli.json('agent', 'list')).find((one: { name: string }) => one.name === name).agent_id;
});

describe.skipIf(missingScript)(`at a terminal${missingScript ? ` (skipped: ${missingScript})` : ''}`, () => {
  const at = (...words: string[]) => atTerminal(words, { cwd: cli.folder, env: cli.env });

  test('shows the whole request, and approves only after “y”', async () => {
    const id = await cli.hold('clerk', { data: { title: 'Broken \u001b[2Jcup' }, reason: 'It \u202efell' });
    const { request_hash: hash } = await stateOf(id);
    const before = written();
    const no = at('approve', id);
    const shown = await no.shows('Approve exactly this? [y/N]');
    for (const text of ['/repos/acme/shop/issues', 'Broken \\u001b[2Jcup', '⟦U+202E⟧', hash])
      expect(shown).toContain(text);
    no.type('\n');
    const ended = await no.ended;
    expect([ended.code, ended.stdout]).toEqual([1, expect.stringContaining('Nothing was decided.')]);
    expect([written(), (await stateOf(id)).status]).toEqual([before, 'pending']);
    const left = at('approve', id);
    await left.shows('[y/N]');
    left.type('\u0003');
    expect((await left.ended).code).not.toBe(0);
    expect((await stateOf(id)).status).toBe('pending');
    const early = at('approve', id);
    early.type('y\n');
    await early.shows('[y/N]');
    early.type('\n');
    expect((await early.ended).stdout, 'what was typed before the request was shown').toContain('Nothing was decided.');
    expect((await stateOf(id)).status).toBe('pending');
    const yes = at('approve', id);
    await yes.shows('[y/N]');
    yes.type('y\n');
    const made = await yes.ended;
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('and made')]);
    expect(actingIn(made.stdout)).toEqual([]);
    expect(written()).toBe(before + 1);
  });

  test('deny prompts for a reason', async () => {
    const id = await cli.hold('clerk');
    const asked = at('deny', id);
    await asked.shows('Reason, for the agent to read');
    asked.type('Not today\n');
    await asked.shows('Deny it? [y/N]');
    asked.type('yes\n');
    expect((await asked.ended).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ status: 'denied', note: 'Not today' });
  });
});
