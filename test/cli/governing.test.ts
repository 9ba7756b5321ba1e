/** Agents, grants, policies and connections on the command line. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startCliWorld } from '../world/cli-world.ts';
import { actingIn, atTerminal, missingScript } from '../world/terminal.ts';
import { shared } from '../world/world.ts';

let clerk = '';
const cli = shared(() => startCliWorld());
beforeAll(async () => {
  clerk = await cli.agent('clerk');
});

const good = async (...words: string[]) => {
  const { code, stdout, stderr } = await cli.run(...words);
  expect(code, stderr).toBe(0);
  expect(actingIn(stdout)).toEqual([]);
  return stdout;
};
const bad = async (...words: string[]) => {
  const { code, stdout, stderr } = await cli.run(...words);
  expect(stdout).toBe('');
  return `${code} ${stderr}`;
};

describe('grant', () => {
  test('grants are added, changed, listed and removed, with every limit', async () => {
    await cli.agent('writer', '--grant', 'codehost=codehost:issues.read');
    await good('grant', 'remove', 'writer', 'codehost', '--yes');
    expect(await good('grant', 'list', 'writer')).toBe('writer is granted nothing.\n');
    const made = await good(
      ...['grant', 'add', 'writer', 'codehost', '--scopes', 'issues.read,codehost:issues.write'],
      ...['--repos', 'acme/shop,acme/site', '--expires', '30d', '--approval'],
    );
    expect(made).toMatch(
      /codehost: codehost:issues.read, codehost:issues.write\n {2}repositories: acme\/shop, acme\/site; until \S+ \S+; every call needs an approval/,
    );
    expect(await bad('grant', 'add', 'writer', 'codehost', '--scopes', 'issues.read')).toMatch(/^1 .*grant change/);
    const [before] = await cli.json('grant', 'list', 'writer');
    const changed = await cli.json(
      'grant',
      'change',
      'writer',
      'codehost',
      '--add-scopes',
      'contents.read',
      '--no-approval',
    );
    expect(changed.grant).toMatchObject({
      scopes: [...before.scopes, 'codehost:contents.read'],
      repos: before.repos,
      expires_at: before.expires_at,
      require_approval: false,
    });
    const freed = await cli.json('grant', 'change', 'writer', 'codehost', '--repos', 'all', '--expires', 'never');
    expect(freed.grant).toMatchObject({ repos: null, expires_at: null, scopes: changed.grant.scopes });
  });

  test('invalid input is refused with a reason, and changes nothing', async () => {
    const before = await cli.json('grant', 'list', 'clerk');
    expect(await bad('grant', 'list', 'clrek')).toMatch(/^1 .*Did you mean "clerk"\?/);
    expect(await bad('grant', 'change', 'clerk', 'mailhost', '--scopes', 'x:y')).toMatch(
      /^1 There is no platform "mailhost"/,
    );
    expect(await bad('grant', 'change', 'clerk', 'codehost', '--scopes', 'codehost:nothing')).toMatch(
      /^1 .*codehost:nothing/,
    );
    expect(await bad('grant', 'change', 'clerk', 'codehost', '--expires', 'soon')).toMatch(/^2 /);
    expect(await bad('grant', 'change', 'clerk', 'codehost')).toMatch(/^2 Say what to change/);
    expect(await bad('grant', 'change', 'clerk', 'codehost', '--repos', 'not a repo')).toMatch(/^1 /);
    expect(await bad('grant', 'remove', 'clerk', 'codehost')).toMatch(/^2 .*--yes/);
    expect(await cli.json('grant', 'list', 'clerk')).toEqual(before);
  });

  test('a refusal suggests a command for the same grant, also of an agent whose name has spaces', async () => {
    await cli.agent('night shift');
    expect(await bad('grant', 'add', 'night shift', 'codehost', '--scopes', 'issues.read')).toMatch(
      /agent-broker grant change 'night shift' codehost\n$/,
    );
    const other = ['night shift', 'codehost', '--connection', 'other', '--scopes', 'issues.read'];
    expect(await bad('grant', 'change', ...other)).toMatch(
      /agent-broker grant add 'night shift' codehost --connection other --scopes …\n$/,
    );
    expect(await bad('agent', 'static-key', 'revoke', 'night shift', 'abcdef12')).toMatch(
      /agent-broker agent static-key list 'night shift'\n$/,
    );
  });

  test.skipIf(missingScript)('remove asks for confirmation', async () => {
    await cli.agent('leaver');
    const asked = atTerminal(['grant', 'remove', 'leaver', 'codehost'], { cwd: cli.folder, env: cli.env });
    expect(await asked.shows('Take this away?')).toContain('codehost:issues.read');
    asked.type('n\n');
    expect((await asked.ended).code).toBe(1);
    expect(await cli.json('grant', 'list', 'leaver')).toHaveLength(1);
  });
});

describe('agent', () => {
  test('workload create prints the public address of the broker for the agent, not the one of the local command', async () => {
    const { base_url } = (await cli.owner('GET', '/owner/me')).body;
    const made = await good(
      ...['agent', 'workload', 'create', 'sweeper', '--issuer', 'https://kubernetes.default.svc', '--subject', 's'],
    );
    expect(made).toContain(`  AGENT_BROKER_URL=${base_url} AGENT_BROKER_AGENT_ID=agt_`);
  });

  test.skipIf(missingScript)('revoke asks for confirmation', async () => {
    const { agent_id } = await cli.json('agent', 'show', 'clerk');
    const asked = atTerminal(['agent', 'revoke', 'clerk'], { cwd: cli.folder, env: cli.env });
    expect(await asked.shows('This cannot be undone.')).toMatch(new RegExp(`clerk\\S* \\(${agent_id}\\) is active`));
    asked.type('n\n');
    expect((await asked.ended).code).toBe(1);
    expect(await cli.json('agent', 'show', agent_id)).toMatchObject({ status: 'active' });
  });

  test('revoke and delete need --yes without a terminal, and with --json', async () => {
    await cli.agent('final');
    const status = async () => (await cli.json('agent', 'show', 'final')).status;
    for (const [verb, before, after] of [
      ['revoke', 'active', 'revoked'],
      ['delete', 'revoked', 'deleted'],
    ] as const) {
      for (const words of [[], ['--json']]) {
        const { code, stdout, stderr } = await cli.run('agent', verb, 'final', ...words);
        expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('add --yes')]);
      }
      expect(await status()).toBe(before);
      expect((await cli.json('agent', verb, 'final', '--yes')).status).toBe(after);
    }
  });
});

describe('restored', () => {
  test('a reason without --end is refused, because nothing would record it', async () => {
    expect(await bad('restored', '--reason', 'seen')).toBe(
      '2 A reason is recorded when the review ends: add --end, or leave out --reason.\n',
    );
  });
});

describe('policy', () => {
  const tried = (...words: string[]) => good('policy', 'try', '--agent', 'clerk', '--platform', 'codehost', ...words);

  test('try prints the decision for a call and the deciding rule, without sending the call', async () => {
    const body = join(cli.folder, 'body.json');
    writeFileSync(body, '{"title":"It leaks"}');
    const sent = cli.upstream.seen.length;
    const held = await tried('--method', 'post', '--endpoint', '/repos/acme/shop/issues', '--body', `@${body}`);
    expect(held).toMatch(/^It would be held for a person\.\n/);
    expect(held).toMatch(/Scope +codehost:issues.write\n/);
    expect(held).toMatch(/Rules +policy .*POST, PUT, PATCH wait/);
    expect(held).toMatch(/Policy +careful, version 1/);
    expect(await tried('--endpoint', '/repos/acme/shop/issues')).toMatch(/^It would be made\./);
    await cli.agent('looker', '--grant', 'codehost=codehost:metadata.read');
    const look = ['--agent', 'looker', '--platform', 'codehost', '--endpoint', '/repos/acme/shop'];
    const masked = await good('policy', 'try', ...look);
    expect(masked).toMatch(/Masked +temp_clone_token, in what it is answered\n/);
    const refused = await tried(
      '--method',
      'DELETE',
      '--endpoint',
      '/repos/acme/shop/issues/1',
      '--scope',
      'codehost:contents.read',
    );
    expect(refused).toMatch(/^It would be refused\.\nWhy .*\nReason +denied_by_policy/);
    const { decision } = await cli.json(
      'policy',
      'try',
      '--agent',
      clerk,
      '--platform',
      'codehost',
      '--endpoint',
      '/repos/acme/shop/issues',
    );
    expect(decision).toBe('allow');
    expect(cli.upstream.seen.length).toBe(sent);
  });

  test('try finds the scope that covers the endpoint among any number of granted ones, with few requests', async () => {
    await cli.agent('holder', '--grant', 'codehost=everything');
    // More runs than a broker would allow if each made a request for each scope.
    for (let i = 0; i < 4; i++)
      expect(
        await good('policy', 'try', '--agent', 'holder', '--platform', 'codehost', '--endpoint', '/user/starred'),
      ).toMatch(/^It would be made\.\n(.*\n)*Scope +codehost:starring\.read\n/);
    const graphql = await good(
      ...['policy', 'try', '--agent', 'holder', '--platform', 'codehost', '--method', 'POST', '--endpoint', '/graphql'],
      ...['--body', '{"query":"mutation { addStar(input: {starrableId: 1}) { clientMutationId } }"}'],
    );
    expect(graphql).toMatch(/^It would be held for a person\.\n(.*\n)*Scope +codehost:starring\.write\n/);
  });

  test('try decides on the connection that is named', async () => {
    const { body } = await cli.owner('POST', '/owner/connections', {
      ...{ platform: 'codehost', label: 'second', secret: 'second-token-0123456789' },
    });
    await cli.agent('two', '--grant', 'codehost=codehost:issues.read');
    onTestFinished(async () => {
      await good('grant', 'remove', 'two', 'codehost', '--yes');
      expect((await cli.owner('DELETE', `/owner/connections/${body.id}`)).status).toBe(200);
    });
    await good('grant', 'add', 'two', 'codehost', '--connection', 'second', '--scopes', 'contents.read');
    const call = ['policy', 'try', '--agent', 'two', '--platform', 'codehost', '--endpoint', '/repos/acme/shop/tags'];
    expect(await good(...call)).toMatch(/^It would be refused\.\n(.*\n)*Reason +scope_not_granted\n/);
    expect(await good(...call, '--connection', 'second')).toMatch(/^It would be made\./);
    expect(await bad(...call, '--connection', 'secnd')).toMatch(
      /^1 There is no connection secnd\. Did you mean "second"\?/,
    );
  });

  test('list and show', async () => {
    expect(await bad('policy', 'show', 'nothing')).toMatch(
      /^1 There is no policy nothing\. All of them: .* policy list/,
    );
    expect(await good('policy', 'list')).toMatch(/^NAME +VERSION +AGENTS\n(.*\n)*careful +1 +\d/);
    const shown = await good('policy', 'show', 'careful');
    expect(shown).toContain('POST, PUT, PATCH wait');
    expect(shown).toContain('DELETE is denied');
    const all = await cli.json('policy', 'list');
    expect(all).toContainEqual(expect.objectContaining({ name: 'careful', version: 1 }));
    const { rules, ...careful } = await cli.json('policy', 'show', 'careful');
    expect(careful).toMatchObject({ name: 'careful', version: 1 });
    expect(rules).toMatchObject([
      { effect: 'allow', scopes: ['codehost:*.read'] },
      { effect: 'require_approval', methods: ['POST', 'PUT', 'PATCH'] },
      { effect: 'deny', methods: ['DELETE'] },
    ]);
  });

  test.each([
    ['a body that is no JSON', ['--body', '{'], /^2 .*--body takes a JSON object/],
    ['a body that is a number', ['--body', '1'], /^2 .*--body takes a JSON object, list or text/],
    ['a body that the operation does not take', ['--body', '[]', '--method', 'PATCH'], /^1 .*data: must be an object/],
    ['a body with a member twice', ['--body', '{"a":1,"a":2}'], /^2 .*--body cannot be sent .*: \/a: .* there twice/],
    ['a file that is not there', ['--body', '@nowhere.json'], /^1 nowhere.json cannot be read/],
    ['a method that there is not, once', ['--method', 'FOO'], /^1 method: "FOO" is not allowed; [^\n]*\n?$/],
  ])('%s is refused', async (_what, words, message) => {
    const call = ['policy', 'try', '--agent', 'clerk', '--platform', 'codehost', '--endpoint', '/user'];
    expect(await bad(...call, ...words)).toMatch(message);
  });
});

describe('connection', () => {
  const answers = (status: number) => {
    cli.upstream.answer = (_request, response) => response.writeHead(status).end();
  };
  const listed = async () => (await good('connection', 'list')).split('\n')[1];
  afterEach(() => {
    cli.upstream.answer = undefined;
  });

  test('list and test print the states of the console, and test exits 1 when a connection was refused or failed', async () => {
    expect(await good('connection', 'list')).toBe(
      'NAME  PLATFORM  STATE          USED\nmain  codehost  Not tried yet  where none is named\n',
    );
    const took = await cli.run('connection', 'test', 'main');
    expect([took.code, took.stdout]).toEqual([0, expect.stringMatching(/^main \(codehost\) {2}Worked: /)]);
    expect(await listed()).toMatch(/ Worked just now /);
    answers(404);
    const reached = await cli.run('connection', 'test', 'main');
    expect([reached.code, reached.stdout]).toEqual([0, expect.stringMatching(/^main \(codehost\) {2}Reached: /)]);
    expect(await listed()).toMatch(/ Reached just now /);
    answers(401);
    const refused = await cli.run('connection', 'test');
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/^main \(codehost\) {2}Refused: /)]);
    expect(await listed()).toMatch(/ Refused just now /);
    answers(500);
    const failed = await cli.run('connection', 'test');
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringMatching(/^main \(codehost\) {2}Failed: /)]);
    const told = (await good('activity')).split('\n').filter((each) => each.includes('connection tested'));
    expect(told.map((each) => /(Worked|Reached|Refused|Failed) +connection tested/.exec(each)?.[1])).toEqual([
      ...['Worked', 'Reached', 'Refused', 'Failed'],
    ]);
    expect(await bad('connection', 'test', 'mian')).toMatch(/^1 .*Did you mean "main"\?/);
    const failedAsJson = await cli.run('connection', 'test', 'main', '--json');
    expect([failedAsJson.code, JSON.parse(failedAsJson.stdout)]).toMatchObject([
      1,
      [{ label: 'main', ok: false, upstream_status: 500 }],
    ]);
    cli.upstream.answer = undefined;
    expect(await cli.json('connection', 'test')).toMatchObject([{ label: 'main', ok: true, upstream_status: 200 }]);
  });

  test('a connection with a token per person is tested only when named', async () => {
    const auth = { type: 'oauth2', issuer: 'https://id.example', client_id: 'broker', scopes: ['openid'] };
    const mine = { kind: 'rest', base_url: 'https://mine.example', auth, per_person: { enabled: true, asserted: [] } };
    const text = JSON.stringify({
      platforms: { codehost: { use: 'github', base_url: cli.upstream.url }, mine: { ...mine, scopes: {} } },
      connections: { main: { platform: 'codehost', secret: { env: 'CODEHOST_TOKEN' } }, own: { platform: 'mine' } },
    });
    const values = { 'env:CODEHOST_TOKEN': 'codehost-token-0123456789' };
    const applied = await cli.owner('POST', '/owner/governance/apply', { text, values });
    expect(applied.status, JSON.stringify(applied.body)).toBe(200);
    expect(await good('connection', 'list')).toMatch(/^own +mine +One token per person /m);
    expect(await cli.json('connection', 'test')).toMatchObject([{ label: 'main', ok: true }]);
    expect(await cli.run('connection', 'test', 'own')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('Each person gives their own token for this connection'),
    });
  });
});

describe('agent show', () => {
  test('prints the agent, its grants, what waits, and its last call', async () => {
    await cli.act('clerk', {});
    const id = await cli.hold('clerk');
    const shown = await good('agent', 'show', 'clerk');
    for (const words of [
      new RegExp(`^clerk  ${clerk}$`, 'm'),
      /^Status +Active/m,
      /^Owner +\S+@\S+$/m,
      /^Key +\S{20,}, for \d+ (s|min)$/m,
      /^Policy +careful$/m,
      /^Granted +codehost: codehost:issues.read, codehost:issues.write$/m,
      new RegExp(`^Waits +${id.slice(0, 6)}`, 'm'),
      /^Last call .* Held +clerk .+ on GitHub/m,
    ])
      expect(shown).toMatch(words);
    const whole = await cli.json('agent', 'show', clerk);
    expect(whole).toMatchObject({ name: 'clerk', policy: 'careful', waiting: [{ id }], last_call: { result: 'held' } });
  });

  test('prints how much of the rules’ limits is used', async () => {
    const limit = { most: 20, of: '2', per: 'month', together: true };
    const put = async (guardrails: unknown) => {
      const { version } = (await cli.owner('GET', '/owner/guardrails')).body;
      const answer = await cli.owner('POST', '/owner/guardrails', { guardrails, version });
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    };
    const { guardrails } = (await cli.owner('GET', '/owner/guardrails')).body;
    await put([{ name: 'twenty', effect: 'deny', scopes: ['codehost:issues.read'], limit }]);
    onTestFinished(() => put(guardrails));
    await cli.act('clerk', {});
    expect(await good('agent', 'show', 'clerk')).toMatch(
      /^Limits +twenty \(guardrail\): 2 of 20 a month of 2, of all agents together used,\s+until \d/m,
    );
    const { limits } = await cli.json('agent', 'show', clerk);
    expect(limits).toMatchObject([{ rule: 'twenty', used: 2, together: true }]);
  });

  test('prints which rule applies because of which call', async () => {
    const { guardrails, version } = (await cli.owner('GET', '/owner/guardrails')).body;
    const after = { scopes: ['codehost:issues.read'], within: '1h' };
    const put = async (rules: unknown, at: number) =>
      await cli.owner('POST', '/owner/guardrails', { guardrails: rules, version: at });
    const made = await put([{ name: 'quiet', effect: 'deny', methods: ['DELETE'], after }], version);
    expect(made.status, JSON.stringify(made.body)).toBe(200);
    onTestFinished(async () => void (await put(guardrails, made.body.version)));
    await cli.act('clerk', {});
    expect(await good('agent', 'show', 'clerk')).toMatch(
      /^Applies +quiet \(guardrail\) until .+, because of the call\s+[0-9a-f-]{36}$/m,
    );
  });

  test('finds a suspended agent by its name, too', async () => {
    await cli.agent('halted');
    expect(await good('agent', 'suspend', 'halted', '--reason', 'looked \u001b[31modd')).toMatch(
      /^halted .* is suspended/,
    );
    expect(await good('agent', 'show', 'halted')).toMatch(/^Status +Suspended since .*: looked ⟦U\+001B⟧\[31modd$/m);
  });
});

test('--help groups the commands by topic, and a mistyped command gets a suggestion', async () => {
  const { stdout } = await cli.run('--help');
  const groups = stdout.split('\n').filter((each) => /^[A-Z].*:$/.test(each));
  expect(groups.length).toBeGreaterThan(4);
  expect(groups).toContain('Daily work:');
  const wrong = await cli.run('aprove', 'x');
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Did you mean approve?')]);
});

describe('agent static-key', () => {
  const list = () => cli.json('agent', 'static-key', 'list', 'clerk');

  test('issue prints a key once, list omits its secret, and revoke ends it', async () => {
    const connection = (await cli.json('connection', 'list'))[0].label;
    const made = await good(
      ...[
        'agent',
        'static-key',
        'issue',
        'clerk',
        '--connection',
        connection,
        '--label',
        'report server',
        '--expires',
        '7d',
      ],
    );
    const [, key = ''] = /^(abk_[\w-]{43})\nShown once, good until /.exec(made) ?? [];
    expect(key).not.toBe('');
    const [listed] = await list();
    expect(listed).toMatchObject({ label: 'report server', status: 'live', connection: { label: connection } });
    const table = await good('agent', 'static-key', 'list', 'clerk');
    expect(table).toMatch(/ID +LABEL +CONNECTION +STATUS +EXPIRES +LAST USED\n\S+ +report server/);
    expect(table).not.toContain(key.slice(4));
    const short = listed.id.slice(0, 8);
    expect(await good('agent', 'static-key', 'revoke', 'clerk', short)).toBe(
      'The static key report server is refused from now on.\n',
    );
    expect((await list())[0]).toMatchObject({ status: 'ended', ended_because: 'owner' });
    expect(await bad('agent', 'static-key', 'revoke', 'clerk', short)).toMatch(/^1 .*already/);
    const much = ['agent', 'static-key', 'issue', 'clerk', '--connection', connection, '--label', 'x', '--expires'];
    expect(await bad(...much, 'never')).toMatch(/^2 .*90 days/);
    expect(await bad(...much, '91d')).toMatch(/^2 .*--expires: .*90 days/);
    expect(await bad('agent', 'static-key', 'revoke', 'clerk', 'ffffffff')).toMatch(/^1 .*no static key/);
  });
});

test('connection set changes the idle and wait limits, and prints the new values', async () => {
  const { label } = (await cli.json('connection', 'list'))[0];
  expect(await good('connection', 'set', label, '--idle', '600')).toContain(
    'silent for 600 seconds, and a request waits for a person for 25 seconds',
  );
  expect(await good('connection', 'set', label, '--idle', 'default')).toContain(
    'silent for as long as the platform says, or 60 seconds, and',
  );
  expect(await cli.json('connection', 'set', label, '--idle', 'default', '--wait', '0')).toMatchObject({
    idle_seconds: null,
    wait_seconds: 0,
  });
  expect(await bad('connection', 'set', label)).toMatch(/^2 /);
  expect(await bad('connection', 'set', label, '--idle', '601')).toMatch(/^2 .*1 to 600/);
  expect(await bad('connection', 'set', 'nothing', '--wait', '1')).toMatch(/^1 .*no connection nothing/);
  await good('connection', 'set', label, '--wait', 'default');
});

// Must run last: it adds connections, and the tests above expect only one.
describe('connection list', () => {
  test('shows a connection with a token per person as such, not as missing one', async () => {
    const platform = (perPerson: boolean) => ({
      platform: perPerson ? 'wiki' : 'notes',
      entry: {
        kind: 'rest',
        base_url: 'https://docs.example/api',
        auth: { type: 'oauth2', issuer: 'https://id.example', client_id: 'web', scopes: ['api'] },
        scopes: { 'docs:read': ['GET /**'] },
        per_person: { enabled: perPerson },
      },
    });
    const labels: string[] = [];
    for (const perPerson of [true, false]) {
      const made = await cli.owner('POST', '/owner/platforms', platform(perPerson));
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      const connection = { platform: platform(perPerson).platform, label: `shared-${perPerson}` };
      const there = await cli.owner('POST', '/owner/connections', connection);
      expect(there.status, JSON.stringify(there.body)).toBe(201);
      labels.push(connection.label);
    }
    const lines = (await good('connection', 'list')).split('\n');
    const states = labels.map((label) => lines.find((one) => one.startsWith(label)));
    expect(states).toEqual([
      expect.stringContaining(' One token per person '),
      expect.stringContaining(' Not connected '),
    ]);
    const listed = await cli.json('connection', 'list');
    expect(labels.map((label) => listed.find((one: { label: string }) => one.label === label).per_person)).toEqual([
      true,
      false,
    ]);
  });

  test('shows why a connection gets no token', async () => {
    const entry = {
      kind: 'rest',
      base_url: cli.upstream.url,
      auth: { type: 'client_credentials', token_endpoint: `${cli.upstream.url}/token` },
      scopes: { 'reports:read': ['GET /**'] },
    };
    expect((await cli.owner('POST', '/owner/platforms', { platform: 'reports', entry })).status).toBe(201);
    const secret = { client_id: 'client', client_secret: 'secret-0123456789' };
    const there = await cli.owner('POST', '/owner/connections', { platform: 'reports', label: 'reports', secret });
    expect(there.status, JSON.stringify(there.body)).toBe(201);
    cli.upstream.answer = (_request, response) => response.writeHead(401).end('{"error":"invalid_client"}');
    await cli.agent('reporter', '--policy', 'default', '--grant', 'reports=reports:read');
    const call: object = { platform: 'reports', endpoint: '/1', scope: 'reports:read' };
    expect((await cli.act('reporter', call)).body.error).toBe('platform_reauth_needed');
    expect(await good('connection', 'list')).toMatch(
      /^reports has got no token \(first failure \S.*\): The token endpoint of reports refused: invalid_client\. .*An owner replaces it\.$/m,
    );
  });
});
