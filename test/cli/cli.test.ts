import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import jsqr from 'jsqr';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asQrCode, notForPhones, tooWide } from '../../bin/link-for-phone.ts';
import { expectStatus, jsonPost, jsonRequest, makeKeyPair } from '../world/agent.ts';
import { commandHost, runCommand, startServe } from '../world/command.ts';
import { smallDisk } from '../world/small-disk.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');

type More = { env?: Record<string, string>; input?: string };
/** With `input`, runs a process of its own: the command reads standard input by its file descriptor. */
const run = (words: readonly string[], { env, input }: More = {}) =>
  input === undefined
    ? hosted(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env } })
    : runCommand(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env }, input });
/** Runs a process of its own, to check the exit code that a shell sees: one for each code. */
const runApart = (words: readonly string[], env: Record<string, string> = {}) =>
  runCommand(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env } });

let greeting = '';
let url = '';
const served = shared(() => startServe(['--print-link'], { cwd: folder, env: { AGENT_BROKER_DATA: data } }));
beforeAll(async () => {
  ({ greeting, url } = served);
});

afterAll(async () => {
  expect(await served.stop()).toBe(0);
});

let token: string | undefined;
async function callSandbox(action: Record<string, unknown>) {
  token ??= (await run(['token', '--ttl', '300'])).stdout.trim();
  const response = await fetch(
    `${url}/v1/actions`,
    jsonPost({ platform: 'sandbox', ...action }, { authorization: `Bearer ${token}` }),
  );
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  return { status: response.status, body: (await response.json()) as any };
}

describe('a first start', () => {
  test('prints the sign-in link of the console, and a first call that works as it is', async () => {
    expect(greeting).toMatch(/\/console\/sign-in#sgn_/);
    expect(greeting).toContain('"scope":"sandbox:issues.read"');
    const { status, body } = await callSandbox({ endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' });
    expect(status).toBe(200);
    expect(body.data.items.length).toBeGreaterThan(0);
  });

  test('allows reads, holds refunds and denies deletes', async () => {
    const refund = {
      endpoint: '/refunds',
      method: 'POST',
      scope: 'sandbox:refunds.create',
      data: { payment: 'p', amount: 1 },
    };
    expect((await callSandbox(refund)).status).toBe(202);
    const deleted = await callSandbox({ endpoint: '/issues/1', method: 'DELETE', scope: 'sandbox:issues.delete' });
    expect(deleted).toMatchObject({ status: 403, body: { reason: 'denied_by_policy' } });
  });

  test.skipIf(process.platform === 'win32')('only the owner of the data folder can read keys and profiles', () => {
    for (const path of ['keys/master.key', 'profiles/default.json', 'run/broker.json', 'sandbox.json'])
      expect(statSync(join(data, path)).mode & 0o077).toBe(0);
  });
});

test('an empty variable counts as unset for the command line, as for the server', async () => {
  const empty = Object.fromEntries(
    ['AGENT_ID', 'OWNER_TOKEN', 'PIPELINE', 'PRIVATE_KEY', 'PROFILE', 'TOKEN_FILE', 'URL'].map((name) => [
      `AGENT_BROKER_${name}`,
      '',
    ]),
  );
  for (const words of [['token'], ['owner', 'list'], ['export']]) {
    const { code, stderr } = await run(words, { env: empty });
    expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' });
  }
  for (const words of [['token'], ['owner', 'list']]) {
    const { code, stderr } = await run(words, { env: { ...empty, AGENT_BROKER_DATA: '' } });
    expect([code, stderr]).toEqual([1, expect.stringContaining(join(folder, '.agent-broker'))]);
  }
});

describe('exit codes', () => {
  test('0 for --help of every command', async () => {
    for (const words of [['--help'], ['plan', '--help'], ['owner', 'add', '--help'], ['verify', 'receipt', '--help']]) {
      const { code, stdout } = await (words.length === 1 ? runApart(words) : run(words));
      expect({ code, usage: stdout.startsWith('Usage: agent-broker') }).toEqual({ code: 0, usage: true });
      // Every command but Commander's own has a topic.
      if (words.length === 1) expect(stdout).toMatch(/^Commands:\n {2}help \[command\] .*\n(?! )/m);
    }
  });

  test.each([
    ['an unknown command', ['fly']],
    ['an unknown option', ['serve', '--fly']],
    ['a missing argument', ['plan']],
    ['a choice that is none', ['keys', 'rotate', 'front-door']],
    ['a lifetime that is too long', ['token', '--ttl', '301']],
    ['a lifetime that is not in decimal digits', ['token', '--ttl', '0x10']],
    ['a wait that is not in decimal digits', ['mcp', '--wait', '1e1']],
    ['a missing option', ['owner', 'add', 'a@b.example']],
  ])('2 for %s, with a hint', async (_what, words) => {
    const { code, stdout, stderr } = await (words[0] === 'fly' ? runApart(words) : run(words));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('--help');
  });

  test('1 when no broker runs on the data folder, with what to do', async () => {
    const { code, stderr } = await runApart(['owner', 'link', '--data', join(folder, 'elsewhere')]);
    expect(code).toBe(1);
    expect(stderr).toContain('agent-broker serve');
  });

  test('1 for an address without a scheme, and for a malformed owner session', async () => {
    const session = (await run(['owner', 'token'])).stdout;
    const list = ['agent', 'list', '--json'];
    for (const [words, env, says] of [
      [['--url', 'localhost:8787', '--owner-token', 'x'], {}, '--url is localhost:8787: write'],
      [[], { AGENT_BROKER_URL: 'broker.example' }, 'AGENT_BROKER_URL is broker.example: write'],
      [
        ['--url', 'http://localhost:9/mcp'],
        {},
        '--url is http://localhost:9/mcp: write the address of the broker without a path, such as http://localhost:9.',
      ],
      [['--owner-token', `${session}${session}`], {}, 'contains characters that no token contains'],
    ] as const) {
      const { code, stderr } = await run([...list, ...words], { env });
      expect([code, stderr]).toEqual([1, expect.stringContaining(says)]);
    }
    // A secret store may return the session with a final newline.
    const { code, stderr } = await run(list, { env: { AGENT_BROKER_OWNER_TOKEN: session } });
    expect(session).toMatch(/\n$/);
    expect(code, stderr).toBe(0);
  });

  test('2 for an owner or an organisation beside an owner session, which decides both', async () => {
    const session = (await run(['owner', 'token'])).stdout.trim();
    const list = ['agent', 'list', '--json'];
    for (const [words, env, says] of [
      [['--email', 'bob@acme.example', '--owner-token', session], {}, /^--email changes nothing .*\(--owner-token\)/],
      [
        ['--organisation', 'elsewhere'],
        { AGENT_BROKER_OWNER_TOKEN: session },
        /^--organisation .*\(AGENT_BROKER_OWNER_TOKEN\)/,
      ],
    ] as const) {
      const { code, stdout, stderr } = await run([...list, ...words], { env });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(says);
    }
  });

  test('1 for invalid settings, all of which are named', async () => {
    const { code, stderr } = await runApart(['serve'], { AGENT_BROKER_COLOUR: 'red', PORT: 'many' });
    expect(code).toBe(1);
    expect(stderr).toContain('AGENT_BROKER_COLOUR');
    expect(stderr).toContain('PORT: must be a port number from 0 to 65535');
  });
});

describe('owners and agents', () => {
  test('owner token prints a session that the owner API accepts', async () => {
    const { stdout } = await run(['owner', 'token']);
    await expectStatus(200, fetch(`${url}/owner/agents`, { headers: { authorization: `Bearer ${stdout.trim()}` } }));
  });

  test('owner add adds a viewer, whose session cannot change anything', async () => {
    expect((await run(['owner', 'add', 'vera@acme.example', '--role', 'viewer'])).code).toBe(0);
    const token = (await run(['owner', 'token', '--email', 'vera@acme.example'])).stdout.trim();
    const refused = await run(['agent', 'suspend', 'agt_whatever'], { env: { AGENT_BROKER_OWNER_TOKEN: token } });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('role admin');
  });

  test('owner add takes the organisation, for a broker with several', async () => {
    const add = (organisation: string) =>
      run(['owner', 'add', 'olga@acme.example', '--role', 'viewer', '--organisation', organisation]);
    const unknown = await add('elsewhere');
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('There is no such organisation.')]);
    expect((await add('home')).code).toBe(0);
    expect((await run(['owner', 'remove', 'olga@acme.example', '--yes'])).code).toBe(0);
  });

  test('commands that are suggested take the organisation and the broker that were given', async () => {
    const words = ['--organisation', 'home', '--data', data];
    const none = await run(['channel', 'list', ...words]);
    expect(none.stdout).toContain(`npx agent-broker channel add NAME KIND --organisation home --data ${data}\n`);
    const unknown = await run(['owner', 'remove', 'nobody@acme.example', '--yes', ...words]);
    expect(unknown.stderr).toContain(`See: npx agent-broker owner list --organisation home --data ${data}\n`);
    const agent = await run(['agent', 'show', 'nobody', '--organisation', 'home']);
    expect(agent.stderr).toContain('npx agent-broker agent list --organisation home\n');
  });

  test('owner list and remove', async () => {
    expect((await run(['owner', 'add', 'rob@acme.example', '--role', 'approver'])).stdout).toContain(
      'Sign in with: npx agent-broker owner link --email rob@acme.example',
    );
    expect((await run(['owner', 'list'])).stdout).toMatch(/^rob@acme\.example {2}approver {2}/m);
    const unasked = await run(['owner', 'remove', 'rob@acme.example']);
    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('add --yes')]);
    const removed = await run(['owner', 'remove', 'Rob@acme.example', '--yes']);
    expect([removed.code, removed.stdout]).toEqual([0, 'rob@acme.example is no longer an owner.\n']);
    expect((await run(['owner', 'list', '--json'])).stdout).not.toContain('rob@');
    const again = await run(['owner', 'remove', 'rob@acme.example', '--yes']);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('owner list');
    expect((await run(['owner', 'remove', 'owner@agent-broker.local', '--yes'])).stderr).toContain(
      'cannot remove yourself',
    );
  });

  test('owner hand-over moves agents, after which their previous owner can be removed', async () => {
    for (const name of ['hal', 'ida'])
      expect((await run(['owner', 'add', `${name}@acme.example`, '--role', 'admin'])).code).toBe(0);
    const handOver = (...words: string[]) => run(['owner', 'hand-over', ...words]);
    const named = await handOver('owner@agent-broker.local', 'Hal@acme.example', 'sandbox-agent');
    expect([named.code, named.stdout]).toEqual([
      0,
      'owner@agent-broker.local → hal@acme.example: handed over 1 agent.\n',
    ]);
    expect((await run(['owner', 'remove', 'hal@acme.example', '--yes'])).stderr).toContain(
      'npx agent-broker owner hand-over',
    );
    const all = await handOver('hal@acme.example', 'ida@acme.example', '--json');
    expect(JSON.parse(all.stdout)).toEqual({ handed_over: 1, in_governance_file: 0 });
    expect((await run(['owner', 'remove', 'hal@acme.example', '--yes'])).code).toBe(0);
    expect((await handOver('hal@acme.example', 'ida@acme.example')).stderr).toContain('owner list');
    const none = await handOver('owner@agent-broker.local', 'ida@acme.example');
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('has no agents that are not revoked')]);
    expect((await handOver('ida@acme.example', 'owner@agent-broker.local')).code).toBe(0);
    expect((await run(['owner', 'remove', 'ida@acme.example', '--yes'])).code).toBe(0);
  });

  test('agent list prints ids; agent suspend and resume take effect at the next call', async () => {
    const [agent] = JSON.parse((await run(['agent', 'list', '--json'])).stdout);
    expect(agent).toMatchObject({ name: 'sandbox-agent', status: 'active' });
    expect((await run(['agent', 'list'])).stdout).toContain(agent.owner_id);
    expect((await run(['agent', 'suspend', agent.agent_id, '--reason', 'lunch'])).stdout).toContain('is suspended');
    const read = { endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' };
    const halted = await callSandbox(read);
    expect(halted).toMatchObject({
      status: 403,
      body: { error: 'agent_halted', halt: { cause: 'owner_manual', detail: 'lunch' } },
    });
    expect((await run(['agent', 'suspend', agent.agent_id])).code).toBe(1);
    expect((await run(['agent', 'resume', agent.agent_id])).code).toBe(0);
    expect((await callSandbox(read)).status).toBe(200);
  });
});

describe('verify receipt, offline', () => {
  let receipt = '';
  const keys = join(folder, 'keys.json');
  const fileOf = (text: string) => {
    const file = join(folder, 'some-receipt.jws');
    writeFileSync(file, text);
    return file;
  };
  beforeAll(async () => {
    const { body } = await callSandbox({ endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' });
    const authorization = `Bearer ${(await run(['token'])).stdout.trim()}`;
    const at = `${url}/v1/audit/${body._meta.audit_id}/receipt`;
    receipt = await (await fetch(at, { headers: { authorization, accept: 'application/jose' } })).text();
    writeFileSync(keys, await (await fetch(`${url}/.well-known/svc-receipt-keys.json`)).text());
  });

  test('a genuine receipt verifies from a file, from stdin, and as the JSON of the route', async () => {
    const file = join(folder, 'receipt.jws');
    writeFileSync(file, receipt);
    expect((await run(['verify', 'receipt', file, '--keys', keys])).stdout).toContain('genuine');
    expect((await run(['verify', 'receipt', '--keys', keys], { input: receipt })).code).toBe(0);
    expect((await run(['verify', 'receipt', '-', '--keys', keys], { input: receipt })).code).toBe(0);
    const json = await run(['verify', 'receipt', '--keys', keys, '--json'], { input: JSON.stringify({ receipt }) });
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: true, payload: { result: 'allowed', path: '/issues' } });
  });

  test('the receipt of an owner’s change names the owner', async () => {
    const token = (await run(['owner', 'token'])).stdout.trim();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ approval_ttl_seconds: 7200 });
    expect((await fetch(`${url}/owner/organisation`, { method: 'POST', headers, body })).status).toBe(200);
    const { rows } = (await (await fetch(`${url}/owner/audit`, { headers })).json()) as { rows: { id: string }[] };
    const input = await (await fetch(`${url}/v1/audit/${rows[0]!.id}/receipt`, { headers })).text();
    const { stdout } = await run(['verify', 'receipt', fileOf(input), '--keys', keys]);
    expect(stdout).toMatch(/^ {2}organisation_changed: by owner [0-9a-f-]{36}$/m);
  });

  test.each([
    [
      'a changed payload',
      () => receipt.replace(/\.[^.]+\./, `.${Buffer.from('{"result":"denied"}').toString('base64url')}.`),
      'signature',
    ],
    [
      'a changed signature',
      () => `${receipt.slice(0, -3)}${receipt.endsWith('AAA') ? 'BBB' : 'AAA'}`,
      'does not verify',
    ],
    ['something else', () => 'not a receipt', 'three parts'],
    ['nothing', () => '', 'neither'],
  ])('%s is refused with a reason', async (_what, text, words) => {
    const { code, stderr } = await run(['verify', 'receipt', fileOf(text()), '--keys', keys]);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
  });

  test('a key set whose kid is not the thumbprint of its key is refused', async () => {
    const set = JSON.parse(readFileSync(keys, 'utf8'));
    set.keys[0].kid = 'somebody-else';
    const swapped = join(folder, 'swapped.json');
    writeFileSync(swapped, JSON.stringify(set));
    const { code, stderr } = await run(['verify', 'receipt', fileOf(receipt), '--keys', swapped]);
    expect(code).toBe(1);
    expect(stderr).toContain('thumbprint');
  });
});

describe('keys rotate', () => {
  test('a new signing key is published immediately and signs later', async () => {
    const { stdout } = await run(['keys', 'rotate', 'evidence', '--json']);
    const { kid, signs_from: from } = JSON.parse(stdout);
    expect(Date.parse(from)).toBeGreaterThan(Date.now() + 3600_000);
    const set = (await (await fetch(`${url}/.well-known/svc-receipt-keys.json`)).json()) as { keys: { kid: string }[] };
    expect(set.keys.map((key) => key.kid)).toContain(kid);
  });

  test('the master key is replaced and calls keep working', async () => {
    const before = readFileSync(join(data, 'keys', 'master.key'), 'utf8');
    expect((await run(['keys', 'rotate', 'master'])).code).toBe(0);
    expect(readFileSync(join(data, 'keys', 'master.key'), 'utf8')).not.toBe(before);
    await expectStatus(200, callSandbox({ endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' }));
  });
});

describe('an agent that registers itself', () => {
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  const ask = async (path: string, body?: unknown, bearer?: string): Promise<any> => {
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const response = await fetch(url + path, jsonRequest(body === undefined ? 'GET' : 'POST', body, headers));
    return await response.json();
  };
  const read = (token: string) =>
    ask(
      '/v1/actions',
      { platform: 'sandbox', endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' },
      token.trim(),
    );
  const owners: { session: string; agentId: string } = { session: '', agentId: '' };

  test('registers, is approved, claims its key, and calls with the configuration of the answer', async () => {
    owners.session = (await run(['owner', 'token'])).stdout.trim();
    const { id } = await ask('/owner/me', undefined, owners.session);
    const scopes = [{ platformId: 'sandbox', scopes: ['sandbox:issues.read'] }];
    const asked = await ask('/v1/register', { owner_id: id, agent_name: 'stranger', requested_scopes: scopes });
    const token = asked.registration_token;
    const approved = await ask(`/v1/register/approve/${token}`, {}, owners.session);
    expect(approved).toMatchObject({ status: 'approved', granted: scopes });
    const { private_key } = await ask(`/v1/register/claim-key/${token}`);
    const { mcp_config } = await ask(asked.poll_url);
    const { env } = mcp_config.mcpServers['agent-broker'];
    const keyFile = join(folder, 'stranger.key');
    writeFileSync(keyFile, private_key, { mode: 0o600 });
    const { stdout, stderr } = await run(['token'], { env: { ...env, AGENT_BROKER_PRIVATE_KEY: keyFile } });
    expect(stderr).toBe('');
    expect((await read(stdout)).data.items.length).toBeGreaterThan(0);
    owners.agentId = asked.client_id;
  });

  test('gets another key with a bootstrap token from the command line', async () => {
    const made = JSON.parse((await run(['agent', 'bootstrap', owners.agentId, '--rotate', '--json'])).stdout);
    const { privateKey, publicPem } = makeKeyPair();
    const bound = await ask('/v1/agents/bind', {
      bootstrap_token: made.bootstrap_token,
      public_key_pem: publicPem,
    });
    expect(bound).toMatchObject({ agent_id: owners.agentId, status: 'active' });
    const env = {
      AGENT_BROKER_URL: bound.proxy_url,
      AGENT_BROKER_AGENT_ID: bound.agent_id,
      AGENT_BROKER_OWNER_ID: bound.owner_id,
      AGENT_BROKER_PRIVATE_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    };
    expect((await read((await run(['token'], { env })).stdout)).data.items.length).toBeGreaterThan(0);
    const unknown = await run(['agent', 'bootstrap', 'agt_00000000000000000000']);
    expect([unknown.code, unknown.stdout]).toEqual([1, '']);
    expect((await run(['agent', 'revoke', owners.agentId, '--yes'])).code).toBe(0);
    expect((await read((await run(['token'], { env })).stdout)).reason).toBe('agent_revoked');
  });
});

describe('governance as code', () => {
  const file = join(folder, 'governance.yaml');
  const secret = 'CRM-SECRET-0123456789-abcdef';

  beforeAll(() => {
    mkdirSync(join(folder, 'keys'), { recursive: true });
    writeFileSync(join(folder, 'keys', 'triage.pub.pem'), makeKeyPair().publicPem);
    writeFileSync(
      file,
      `platforms:
  crm:
    kind: rest
    base_url: https://crm.example/api
    auth: { type: bearer }
    scopes: { "crm:contacts.read": ["GET /contacts"] }
connections:
  crm-main: { platform: crm, secret: { env: CRM_TOKEN } }
policies:
  careful: { rules: [{ effect: allow, scopes: ["crm:*.read"] }] }
agents:
  triage:
    policy: careful
    public_key: { file: keys/triage.pub.pem }
    grants: { crm: { scopes: ["crm:contacts.read"], expires: 30d } }
  newcomer:
    policy: careful
    grants: { crm: { scopes: ["crm:contacts.read"] } }
`,
    );
  });

  test('a missing secret is reported with its line, and nothing is sent', async () => {
    const { code, stderr } = await run(['plan', file]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/governance\.yaml:8:\d+: connections\.crm-main\.secret: .*CRM_TOKEN/);
  });

  test.each([
    ['in Latin-1', 'latin1', 'is not text in UTF-8, from its line 2 on; save it in UTF-8.'],
    ['in UTF-16', 'utf16le', 'is text in UTF-16; save it in UTF-8.'],
  ] as const)(
    'a file %s is refused, and a file in UTF-8 with a byte order mark is read',
    async (_name, encoding, why) => {
      const other = join(folder, 'other.yaml');
      const text = `guardrails:\n  - { name: no-cafe, effect: deny, when: "request.body.team == 'café'" }\n`;
      writeFileSync(other, Buffer.from(encoding === 'latin1' ? text : `\ufeff${text}`, encoding));
      for (const command of ['plan', 'apply'])
        expect(await run([command, other])).toMatchObject({
          code: 1,
          stdout: '',
          stderr: `The governance file ${other} ${why}\n`,
        });
      writeFileSync(other, `\ufeff${text}`);
      const planned = await run(['plan', other]);
      expect(planned.stdout, planned.stderr).toMatch(/^\+ guardrails guardrails$[\s\S]*== 'café'/m);
    },
  );

  test('plan --without-secrets needs no secrets, works for a viewer, and warns that they were not compared', async () => {
    expect((await run(['owner', 'add', 'plans@acme.example', '--role', 'viewer'])).code).toBe(0);
    const planned = await run(['plan', file, '--without-secrets', '--email', 'plans@acme.example']);
    expect(planned.code, planned.stderr).toBe(0);
    expect(planned.stdout).toContain('+ connection crm-main');
    expect(planned.stdout).toMatch(/warning: .*its secret was not compared with what is stored/);
    expect((await run(['apply', file, '--email', 'plans@acme.example'], { env: { CRM_TOKEN: secret } })).code).toBe(1);
  });

  test('plan prints the changes, apply makes them, and a second apply changes nothing', async () => {
    const env = { CRM_TOKEN: secret };
    const planned = await run(['plan', file], { env });
    expect(planned.stdout).toContain('+ agent triage');
    expect(planned.stdout).not.toContain(secret);
    expect((await run(['agent', 'list'])).stdout).not.toContain('triage');
    const applied = JSON.parse((await run(['apply', file, '--json'], { env })).stdout);
    expect(applied.bootstrap_tokens).toMatchObject([{ agent: 'newcomer', token: expect.stringMatching(/^abt_/) }]);
    expect((await run(['agent', 'list'])).stdout).toMatch(/newcomer .*pending_bind/);
    expect(JSON.parse((await run(['apply', file, '--json'], { env })).stdout)).toMatchObject({
      changes: [],
      bootstrap_tokens: [],
    });
  });

  test('export writes a file that plan reads without a change, with no secret in it', async () => {
    const exported = join(folder, 'exported.yaml');
    expect((await run(['export', exported])).code).toBe(0);
    const text = readFileSync(exported, 'utf8');
    expect(text).toContain('env: CRM_TOKEN');
    expect(text).not.toContain(secret);
    const planned = JSON.parse((await run(['plan', exported, '--json'], { env: { CRM_TOKEN: secret } })).stdout);
    expect(planned.changes).toEqual([]);
    expect(await run(['export', exported])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is there already'),
    });
    const nowhere = await run(['export', join(folder, 'none', 'exported.yaml')]);
    expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be written (ENOENT)') });
  });

  const disk = smallDisk(4_096);

  test.skipIf(disk === undefined)('export leaves no part of a file on a full disk', async () => {
    writeFileSync(join(disk!, 'other'), Buffer.alloc(4_096));
    const full = await run(['export', join(disk!, 'exported.yaml')]);
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was written.') });
    expect(readdirSync(disk!)).toEqual(['other']);
  });

  test('"-" is standard output of export, and standard input of plan and apply', async () => {
    const { stdout: text } = await run(['export', '-']);
    expect(text).toMatch(/^organisation: /m);
    expect(existsSync(join(folder, '-'))).toBe(false);
    const env = { CRM_TOKEN: secret };
    for (const command of ['plan', 'apply']) {
      const { code, stdout, stderr } = await run([command, '-', '--json'], { env, input: text });
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout).changes).toEqual([]);
    }
    const wrong = await run(['plan', '-'], { input: 'organisation: 5' });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('standard input:1:15: organisation: ')]);
  });
});

describe('a second server on one data folder', () => {
  test('is refused with a reason and exit code 1', async () => {
    const { code, stderr } = await runApart(['serve', '--no-sandbox'], { PORT: '0' });
    expect(code).toBe(1);
    expect(stderr).toContain('Another broker is running on');
  });
});

describe('owner link --qr', () => {
  test('prints a code that decodes to the link, and warns when a phone cannot open the link', async () => {
    const { code, stdout, stderr } = await run(['owner', 'link', '--qr']);
    const lines = stdout.trimEnd().split('\n');
    const link = lines.pop()!;
    expect([code, link]).toEqual([0, expect.stringMatching(/^http:\/\/localhost:\d+\/console\/sign-in#sgn_/)]);
    // Pixels as a camera sees them: each module is 4 pixels wide; a full block is light.
    const rows = lines.flatMap((line) => [
      [...line].map((block) => block === '█' || block === '▀'),
      [...line].map((block) => block === '█' || block === '▄'),
    ]);
    const [SCALE, width] = [4, Math.max(...rows.map((row) => row.length))];
    const pixels = new Uint8ClampedArray(rows.length * SCALE * width * SCALE * 4);
    for (let at = 0; at < pixels.length / 4; at++) {
      const [x, y] = [at % (width * SCALE), Math.floor(at / (width * SCALE))];
      const value = rows[Math.floor(y / SCALE)]![Math.floor(x / SCALE)] ? 255 : 0;
      pixels.set([value, value, value, 255], at * 4);
    }
    expect(jsqr.default(pixels, width * SCALE, rows.length * SCALE)?.data).toBe(link);
    expect(stderr).toContain('A phone cannot open localhost');
  });

  test('a code that is wider than the terminal is left out', () => {
    const code = asQrCode('https://broker.example/console/sign-in#sgn_a');
    const width = code.indexOf('\n');
    expect(tooWide(code, width)).toBeUndefined();
    expect(tooWide(code, width - 1)).toContain(`The QR code has ${width} columns and this terminal ${width - 1}`);
  });

  test.each([
    ['http://127.0.0.1:8787/console/sign-in#sgn_a', /cannot open 127\.0\.0\.1/],
    ['http://[::1]:8787/console/sign-in#sgn_a', /cannot open \[::1\]/],
    ['http://broker.lan/console/sign-in#sgn_a', /no passkeys/],
    ['https://192.168.1.2/console/sign-in#sgn_a', /need a name/],
    ['https://broker.example/console/sign-in#sgn_a', undefined],
  ])('notForPhones of %s', (link, problem) => {
    if (problem) expect(notForPhones(link)).toMatch(problem);
    else expect(notForPhones(link)).toBeUndefined();
  });
});
