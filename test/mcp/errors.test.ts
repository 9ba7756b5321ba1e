/** Errors around the MCP server: the person reads them on standard error, the model in the answer. */
import { chmodSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test, vi } from 'vitest';
import { readArguments } from '../../bin/quick-mcp.ts';
import { jsonPost, makeKeyPair, send, TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { callTool, envelope, type McpProcess, shakeHands, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items/1' };
const PATCH = { platform: 'demo', scope: 'demo:write', endpoint: '/items/1', method: 'PATCH', data: { title: 'x' } };

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent());

async function connected(profile: string): Promise<McpProcess> {
  const mcp = startMcp(profile, ['--wait', '0']);
  await shakeHands(mcp);
  return mcp;
}
let plain: Promise<McpProcess> | undefined;
/** One server for the tests that only call tools of the agent. */
const sharedServer = (): Promise<McpProcess> =>
  (plain ??= (async () => {
    const mcp = startMcp(writeProfile(agent), ['--wait', '0'], {}, afterFile);
    await shakeHands(mcp);
    return mcp;
  })());
const read = async (mcp: McpProcess) => await callTool(mcp, 'read_platform', READ);
/** Starts a server with this handler. Returns its address. */
async function standIn(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(answer!);
  const port = await listenOnLoopback(server);
  return `http://127.0.0.1:${port}`;
}

describe('the agent’s profile', () => {
  test('an unusable profile is reported to model and person, and needs no restart once it is corrected', async () => {
    const profile = writeProfile(agent);
    const right = readFileSync(profile, 'utf8');
    renameSync(profile, `${profile}.away`);
    const mcp = await connected(profile);
    expect((await mcp.request('tools/list')).result.tools.length).toBe(6);
    const wrongs: [change: () => void, words: string][] = [
      [() => {}, 'There is no agent profile at'],
      [() => writeFileSync(profile, '{', { mode: 0o600 }), 'is not JSON'],
      [() => writeFileSync(profile, '{"url": "http://x"}'), 'this is missing: agentId, ownerId, privateKey'],
      [() => writeFileSync(profile, right.replace(/-----BEGIN[^"]*/, 'none')), 'not an RSA key'],
      [() => writeFileSync(profile, right.replace(/http:\/\/[^"]*/, 'broker.example')), 'no http or https address'],
      [
        () => writeFileSync(profile, right.replace(/http:\/\/[^"]*/, 'http://127.0.0.1:9/mcp')),
        'has a path: write http://127.0.0.1:9 ',
      ],
      [() => chmodSync(profile, 0o644), 'chmod 600'],
    ];
    for (const [change, words] of wrongs) {
      change();
      const answer = await read(mcp);
      expect(answer, words).toMatchObject({
        isError: true,
        structuredContent: { status: 'failed', code: 'no_profile' },
      });
      expect(answer.content[0].text).toContain(words);
      expect(answer.content[0].text).toContain('they have to correct this');
      await vi.waitUntil(() => mcp.stderr().includes(words), { timeout: 5_000 });
    }
    writeFileSync(profile, right);
    chmodSync(profile, 0o600);
    expect((await read(mcp)).structuredContent).toMatchObject({ status: 'answered' });
    const key = JSON.parse(right).private_key.split('\n')[1];
    expect(mcp.stderr() + mcp.lines.join()).not.toContain(key);
  });

  test('a profile with a byte order mark and CRLF line ends is accepted', async () => {
    const profile = writeProfile(agent);
    writeFileSync(profile, `\uFEFF${readFileSync(profile, 'utf8').replaceAll('\n', '\r\n')}`);
    expect((await read(await connected(profile))).structuredContent).toMatchObject({ status: 'answered' });
  });

  test('with a key that is not registered at the broker, the model is told to stop, and the person to run doctor', async () => {
    const mcp = await connected(writeProfile(new TestAgent({ ...agent, keys: makeKeyPair() })));
    const answer = await read(mcp);
    expect(answer.structuredContent).toMatchObject({ status: 'failed', code: 'invalid_signature' });
    expect(answer.structuredContent.next).toMatch(/no further calls.*agent-broker doctor/s);
    await vi.waitUntil(() => mcp.stderr().includes('agent-broker doctor'), { timeout: 5_000 });
    await world.forgive();
  });
});

test('a call whose JSON would be changed by parsing is refused immediately, and nothing is sent', async () => {
  const sent: unknown[] = [];
  const url = await standIn((request, response) => {
    sent.push(request.method);
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  });
  const mcp = await connected(writeProfile(agent, undefined, { url }));
  const call = (id: number, data: string, meta = '{}') => {
    const { data: _, ...rest } = PATCH;
    const args = JSON.stringify(rest).replace(/\}$/, `,"data":${data}}`);
    const answer = mcp.next((message) => message.id === id);
    mcp.write(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"_meta":${meta},"name":"write_platform","arguments":${args}}}\n`,
    );
    return answer;
  };
  const before = sent.filter((method) => method !== 'GET').length;
  for (const [id, data, words] of [
    [101, '{"charge":1234567890123456789}', 'data/charge: write it as text'],
    [102, '{"amount":1e999}', 'data/amount: write it as text'],
    [103, '{"to":"a","to":"b"}', 'data/to: this member is there twice'],
  ] as const) {
    const { result } = await call(id, data);
    expect(result).toMatchObject({ isError: true, structuredContent: { status: 'failed', code: 'invalid_arguments' } });
    expect(result.content[0].text).toContain(words);
    expect(result.resultType).toBeUndefined();
  }
  expect(sent.filter((method) => method !== 'GET').length).toBe(before);
  expect((await call(104, '{"a":1e999}', JSON.stringify(envelope()))).result.resultType).toBe('complete');
  const twice = mcp.next((message) => message.id === 105);
  mcp.write(
    '{"jsonrpc":"2.0","id":105,"method":"tools/call","params":{"name":"read_platform","name":"write_platform"}}\n',
  );
  expect((await twice).error.message).toContain('params/name: this member is there twice');
  // Control case: a call that parsing does not change is sent.
  expect((await call(106, '{"charge":"1234567890123456789","amount":1e2}')).result.structuredContent.code).not.toBe(
    'invalid_arguments',
  );
  expect(sent.filter((method) => method !== 'GET').length).toBe(before + 1);
});

describe('the broker', () => {
  test('an unreachable broker is reported, and calls succeed once it is back', async () => {
    let isUp = false;
    const url = await standIn((request, response) => {
      if (!isUp) return void request.socket.destroy();
      response.setHeader('content-type', 'application/json');
      response.end('{"data":{"back":true},"_meta":{}}');
    });
    const mcp = await connected(writeProfile(agent, undefined, { url }));
    const failed = await read(mcp);
    expect(failed.structuredContent).toMatchObject({ status: 'failed', code: 'unreachable' });
    expect(failed.structuredContent.next).toContain('Nothing was done');
    const maybe = await callTool(mcp, 'write_platform', PATCH);
    expect(maybe.structuredContent.next).toMatch(/exactly the same arguments: that is safe/);
    await vi.waitUntil(() => mcp.stderr().includes(`The broker at ${url} does not answer`), { timeout: 5_000 });
    isUp = true;
    expect((await read(mcp)).structuredContent).toMatchObject({ status: 'answered', data: { back: true } });
  });

  test('after a lost connection a write is retried with the same key, and gets a new key once it was answered', async () => {
    const keys: unknown[] = [];
    const url = await standIn((request, response) => {
      if (request.url !== '/v1/actions') return void response.writeHead(404).end('{}');
      keys.push(request.headers['idempotency-key']);
      request.resume().on('end', () => {
        if (keys.length === 1) return void request.socket.destroy();
        response.setHeader('content-type', 'application/json');
        response.end('{"data":1,"_meta":{}}');
      });
    });
    const profile = writeProfile(agent, undefined, { url });
    const first = await connected(profile);
    await callTool(first, 'write_platform', PATCH);
    first.child.kill('SIGKILL');
    const mcp = await connected(profile);
    for (let turn = 0; turn < 2; turn++) await callTool(mcp, 'write_platform', PATCH);
    expect(keys[0]).toMatch(/^mcp-[\w-]{36}$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  type Answers = ([status: number, body: object | string, headers?: object] | undefined)[];
  /**
   * Starts a stand-in that answers governed calls in sequence, for each endpoint separately: status, body and headers, or no answer. Returns the received
   * requests with
   * their times.
   */
  async function inTurn(answers: Answers | Record<string, Answers>) {
    const asked: { key: string; reason: string | undefined; endpoint: string; at: number }[] = [];
    const url = await standIn(async (request, response) => {
      if (request.url !== '/v1/actions') return void response.writeHead(404).end('{}');
      const { reason, endpoint } = JSON.parse(await text(request));
      const own = Array.isArray(answers) ? answers : (answers[endpoint] ?? []);
      const answer = own[asked.filter((one) => one.endpoint === endpoint).length];
      asked.push({ key: String(request.headers['idempotency-key']), reason, endpoint, at: performance.now() });
      if (!answer) return void request.socket.destroy();
      const [status, body, headers = {}] = answer;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    return { asked, profile: writeProfile(agent, undefined, { url }) };
  }
  const MADE = [200, { data: 1, _meta: {} }] as [number, object];
  const inProgress = (seconds: number) =>
    [409, { error: 'idempotency_in_progress', detail: 'Under way.' }, { 'retry-after': seconds }] as [
      number,
      object,
      object,
    ];
  const halt = { state: 'suspended', since: null, cause: 'owner_manual', detail: null, recoverable_by: 'owner' };

  const REFUSALS: [code: string, status: number, body: object][] = [
    ['agent_suspended', 403, { error: 'agent_halted', reason: 'agent_suspended', halt }],
    ['denied_by_policy', 403, { error: 'Permission denied', reason: 'denied_by_policy' }],
    ['agent_inactive', 409, { error: 'agent_inactive' }],
    ['rate_limited', 429, { error: 'rate_limited' }],
    ['store_unavailable', 503, { error: 'store_unavailable' }],
    ['invalid_token', 401, { error: 'invalid_token' }],
  ];
  test(`a write refused with ${REFUSALS.map(([code]) => code).join(', ')} while an earlier attempt is in progress is retried with the same key`, async () => {
    const calls = REFUSALS.map(([code, status, body], i) => {
      const refusal = [status, body] as [number, object];
      const answers = [undefined, inProgress(1), refusal, refusal, MADE, MADE];
      return { code, answers, call: { ...PATCH, endpoint: `/items/${i}` } };
    });
    const { asked, profile } = await inTurn(
      Object.fromEntries(calls.map(({ call, answers }) => [call.endpoint, answers])),
    );
    const first = await connected(profile);
    await Promise.all(calls.map(({ call }) => callTool(first, 'write_platform', call)));
    first.child.kill('SIGKILL');
    const second = startMcp(profile, ['--wait', '20']);
    await shakeHands(second);
    await Promise.all(
      calls.map(async ({ code, call }) => {
        // The retry waits as long as Retry-After says; the refusal is passed on, with advice about the earlier attempt.
        for (let turn = 0; turn < 2; turn++) {
          const { structuredContent } = await callTool(second, 'write_platform', { ...call, reason: 'other words' });
          expect(structuredContent.code).toBe(code);
          expect(structuredContent.next).toMatch(/may have been made.*exactly the same arguments.*not made twice/s);
        }
      }),
    );
    second.child.kill('SIGKILL');
    const third = await connected(profile);
    for (const { code, call } of calls) {
      for (let turn = 0; turn < 2; turn++)
        expect((await callTool(third, 'write_platform', call)).structuredContent.status, code).toBe('answered');
      const own = asked.filter(({ endpoint }) => endpoint === call.endpoint);
      expect(own[2]!.at - own[1]!.at, code).toBeGreaterThan(950);
      const [key] = own.map((one) => one.key);
      expect(
        own.map((one) => one.key === key),
        code,
      ).toEqual([true, true, true, true, true, false]);
      expect(own.slice(0, 5).map(({ reason }) => reason)).toEqual(Array(5).fill(undefined));
    }
  });

  test('a write that is refused at its first attempt leaves no state: the next attempt has another key', async () => {
    const denied = [403, { error: 'Permission denied', reason: 'denied_by_policy' }] as [number, object];
    const { asked, profile } = await inTurn([denied, MADE]);
    const mcp = await connected(profile);
    const refused = await callTool(mcp, 'write_platform', { ...PATCH, reason: 'one' });
    expect(refused.structuredContent.next).not.toContain('same arguments');
    await callTool(mcp, 'write_platform', { ...PATCH, reason: 'two' });
    expect(asked.map(({ reason }) => reason)).toEqual(['one', 'two']);
    expect(asked[1]!.key).not.toBe(asked[0]!.key);
  });

  test('after a timeout of a proxy a write is retried with the same key; after a 4xx of a proxy with a new one', async () => {
    const page = '<html>';
    const { asked, profile } = await inTurn([[504, page], [200, page], MADE, [413, page], MADE]);
    const mcp = await connected(profile);
    for (const next of [
      /exactly the same arguments: that is safe/,
      /exactly the same arguments: that is safe/,
      undefined,
    ]) {
      const { structuredContent } = await callTool(mcp, 'write_platform', PATCH);
      if (next)
        expect(structuredContent).toMatchObject({ code: 'unexpected_answer', next: expect.stringMatching(next) });
      else expect(structuredContent.status).toBe('answered');
    }
    const refused = await callTool(mcp, 'write_platform', PATCH);
    expect(refused.structuredContent.next).toContain('Nothing was done');
    await callTool(mcp, 'write_platform', PATCH);
    const keys = asked.map(({ key }) => key);
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 0, 3, 4]);
  });

  test('a write that stays in progress for longer than the client waits is tried once more at the end of the wait', async () => {
    const { asked, profile } = await inTurn([undefined, inProgress(3600), inProgress(3600), inProgress(3600), MADE]);
    const mcp = startMcp(profile, ['--wait', '1']);
    await shakeHands(mcp);
    await callTool(mcp, 'write_platform', PATCH);
    const { structuredContent } = await callTool(mcp, 'write_platform', PATCH);
    expect(structuredContent).toMatchObject({ status: 'failed', code: 'idempotency_in_progress' });
    expect(structuredContent.next).toContain('exactly the same arguments');
    expect(asked).toHaveLength(3);
    expect(asked[2]!.at - asked[1]!.at).toBeGreaterThan(950);
    expect(new Set(asked.map(({ key }) => key)).size).toBe(1);
  });

  test('a rate limit while a task is polled does not end the task', async () => {
    const url = await standIn((_request, response) => {
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '30' });
      response.end('{"error":"rate_limited","detail":"Too many.","correlation_id":"x"}');
    });
    const mcp = startMcp(writeProfile(agent, undefined, { url }));
    const _meta = envelope({ extensions: { 'io.modelcontextprotocol/tasks': {} } });
    const { result } = await mcp.request('tasks/get', { taskId: '3f6b2f0a-1111-4222-8333-444455556666', _meta });
    expect(result).toMatchObject({
      status: 'working',
      ttlMs: null,
      statusMessage: expect.stringContaining('Too many.'),
    });
  });

  test.each([
    ['behind', 3600, 'token_expired'],
    ['ahead of', -3600, 'invalid_token'],
  ])(
    'a clock of this machine that is %s the broker’s is reported to model and person, with the difference',
    async (how, seconds, code) => {
      const url = await standIn((_request, response) => {
        response.sendDate = false;
        const date = new Date(Date.now() + seconds * 1000).toUTCString();
        response.writeHead(401, { 'content-type': 'application/json', date });
        response.end(JSON.stringify({ error: code, detail: 'The token is not of this time.', correlation_id: 'x' }));
      });
      const mcp = await connected(writeProfile(agent, undefined, { url }));
      const answer = await read(mcp);
      expect(answer.structuredContent).toMatchObject({ status: 'failed', code });
      expect(answer.structuredContent.next).toMatch(new RegExp(`3(599|600|601) seconds ${how} the broker’s.*NTP`));
      const told = new RegExp(`3(599|600|601) seconds ${how} the broker’s`);
      await vi.waitUntil(() => told.test(mcp.stderr()), { timeout: 5_000 });
    },
  );
});

test('a failed call names its audit id, over stdio and HTTP, so that its receipt can be read', async () => {
  const cut = { ...PATCH, reason: 'a cut' };
  const wrong = { ...READ, endpoint: 'items' };
  const mcp = await sharedServer();
  const overHttp = async (name: string, args: object) => {
    const headers = { authorization: `Bearer ${agent.token()}`, accept: 'application/json, text/event-stream' };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
    const { text } = await send(
      `${agent.baseUrl}/mcp`,
      jsonPost(message, { ...headers, 'mcp-protocol-version': '2025-06-18' }),
    );
    return JSON.parse(/^data: (.*)$/m.exec(text)![1]!).result;
  };
  world.upstream.answer = (_request, response) => response.destroy();
  for (const call of [(name: string, args: object) => callTool(mcp, name, args), overHttp])
    for (const [name, args, reason] of [
      ['write_platform', cut, 'upstream_unreachable'],
      ['read_platform', wrong, 'invalid_endpoint'],
    ] as const) {
      const { structuredContent } = await call(name, args);
      expect(structuredContent).toMatchObject({ status: 'failed', code: reason });
      const { row } = await evidenceOf(world, agent, structuredContent.audit_id);
      expect(row).toMatchObject({ result: 'errored', reason });
    }
});

test('for a halted agent the model is told to stop, and to inform the person', async () => {
  const other = await organisation.agent();
  await organisation.ask('POST', `/owner/agents/${other.agentId}/suspend`, { reason: 'Stop until Monday.' });
  const mcp = await connected(writeProfile(other));
  for (const [name, args] of [
    ['read_platform', READ],
    ['list_permissions', {}],
  ] as const) {
    const answer = await callTool(mcp, name, args);
    expect(answer).toMatchObject({ isError: true, structuredContent: { status: 'halted' } });
    expect(answer.structuredContent.detail).toContain('Stop until Monday.');
    expect(answer.structuredContent.next).toMatch(/^Stop now.*Tell the person/s);
  }
  expect(mcp.stderr().match(/This agent is halted \(owner_manual\)\. Stop until Monday\./g)).toHaveLength(1);
});

describe('every refusal includes the next step', () => {
  test('a scope that is not granted leads to request_access, which waits for the decision; the scope is then usable', async () => {
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const lacking = await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
    const mcp = startMcp(writeProfile(lacking), ['--wait', '20']);
    await shakeHands(mcp);
    const refused = await callTool(mcp, 'write_platform', PATCH);
    expect(refused.structuredContent).toMatchObject({ status: 'refused', code: 'scope_not_granted' });
    expect(refused.structuredContent.next).toContain('Call request_access with platform "demo", scope "demo:write"');
    const asking = callTool(mcp, 'request_access', {
      platform: 'demo',
      scope: 'demo:write',
      reason: 'To correct a title.',
    });
    const waiting = await vi.waitUntil(
      async () => (await organisation.ask('GET', '/owner/access-requests?status=pending')).body.access_requests[0],
      { timeout: 15_000, interval: 20 },
    );
    await organisation.ask('POST', `/owner/access-requests/${waiting.request_id}/approve`, { note: 'Fine.' });
    expect((await asking).structuredContent).toMatchObject({ status: 'granted', note: 'Fine.' });
    expect((await callTool(mcp, 'write_platform', PATCH)).structuredContent.status).toBe('answered');
    const again = await callTool(mcp, 'request_access', { platform: 'demo', scope: 'demo:write' });
    expect(again.structuredContent).toMatchObject({ status: 'granted' });
  });

  test('a misspelled platform or scope leads to the right name, and not to an access request for the wrong one', async () => {
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const narrow = await organisation.policy([{ effect: 'allow', scopes: ['demo:read'] }]);
    const reader = await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
    const without = await organisation.agent({ policy, grants: {} });
    const careful = await organisation.agent({ policy: narrow, grants: { demo: { scopeList: ['demo:read'] } } });
    const [mcpOfReader, mcpOfCareful, mcpOfNobody] = await Promise.all(
      [reader, careful, without].map((who) => connected(writeProfile(who))),
    );
    for (const [mcp, wrong, detail] of [
      [mcpOfReader!, { scope: 'write' }, 'platform demo has no scope "write", but "demo:write"'],
      [mcpOfCareful!, { scope: 'write' }, 'platform demo has no scope "write", but "demo:write"'],
      [mcpOfNobody!, { scope: 'write' }, 'platform demo has no scope "write", but "demo:write"'],
      [mcpOfReader!, { platform: 'github' }, 'the organisation has no such platform'],
    ] as const) {
      const { structuredContent: told } = await callTool(mcp, 'write_platform', { ...PATCH, ...wrong });
      expect(told.detail).toContain(detail);
      expect(told.next).toMatch(/^Call again with the scope that the answer names, .* list_permissions/);
      expect(told.next).not.toMatch(/"write"|"github"/);
    }
    const refused = await callTool(mcpOfNobody!, 'write_platform', PATCH);
    expect(refused.structuredContent.next).toContain('Call request_access with platform "demo", scope "demo:write"');
  });

  test('a wrong scope or endpoint, a body that is too large, and invalid arguments each have an error code and advice', async () => {
    const mcp = await sharedServer();
    const cases: [name: string, args: Record<string, unknown>, code: string, next: RegExp][] = [
      ['read_platform', { ...READ, endpoint: '/elsewhere' }, 'endpoint_scope_mismatch', /scope that covers/],
      ['read_platform', { ...READ, endpoint: '//items' }, 'invalid_endpoint', /Correct/],
      ['read_platform', { ...READ, platform: 'nowhere' }, 'no_permission_record', /request_access/],
      ['write_platform', { ...PATCH, data: { a: 'x'.repeat(1_100_000) } }, 'payload_too_large', /less/],
      ['write_platform', { ...PATCH, more: 1 }, 'invalid_arguments', /Correct/],
      ['check_approval', { approval_id: 'none' }, 'invalid_arguments', /Correct/],
      ['check_approval', { approval_id: '3f6b2f0a-1111-4222-8333-444455556666' }, 'not_found', /approval_id/],
      ['request_access', { platform: 'demo', scope: 'demo:none' }, 'scope_not_grantable', /does not help/],
    ];
    for (const [name, args, code, next] of cases) {
      const answer = await callTool(mcp, name, args);
      expect(answer, code).toMatchObject({
        isError: true,
        structuredContent: { code, next: expect.stringMatching(next) },
      });
    }
    await world.forgive();
  });
});

test('invalid messages are answered with JSON-RPC errors, the connection stays open, and only JSON-RPC is written', async () => {
  const mcp = startMcp(writeProfile(agent));
  const errors = ['not json', '[]', '{"jsonrpc":"2.0","id":31}', '{"id":32,"method":"ping"}'];
  errors.push('{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}');
  for (const line of errors) mcp.write(`${line}\n`);
  mcp.write(
    `${JSON.stringify({ method: 'tools/call', params: { x: 'é'.repeat(3_000_000) }, jsonrpc: '2.0', id: 33 })}\n`,
  );
  await shakeHands(mcp);
  const codes = mcp.lines.map((line) => JSON.parse(line)).filter(({ error }) => error);
  expect(codes.map(({ id, error }) => [id, error.code])).toEqual([
    [null, -32700],
    [null, -32600],
    [31, -32600],
    [32, -32600],
    [null, -32600],
    [33, -32600],
  ]);
  const unknown = await mcp.request('tools/call', { name: 'run_shell', arguments: {} });
  expect(unknown.error).toMatchObject({ code: -32602, message: expect.stringContaining('read_platform') });
  expect((await mcp.request('no/such/method')).error.code).toBe(-32601);
  for (const line of mcp.lines) expect(JSON.parse(line).jsonrpc).toBe('2.0');
  mcp.child.stdin!.end();
  expect(await mcp.ended).toBe(0);
});

test('valid options are parsed by the fast path; help and invalid options are left to the full command line', () => {
  expect(readArguments([])).toEqual({ profile: undefined, waitSeconds: 50, caller: {} });
  expect(readArguments(['--profile', 'x.json', '--wait=20', '--caller', 'slack:U1'])).toEqual({
    profile: 'x.json',
    waitSeconds: 20,
    caller: { caller: 'slack:U1' },
  });
  for (const words of [
    ['--help'],
    ['--wait', '51'],
    ['--wait', ''],
    ['--wait', 'x'],
    ['--wait', '1e1'],
    ['--wait', '0x10'],
    ['--proflie', 'x'],
    ['more'],
  ])
    expect(readArguments(words)).toBeUndefined();
});

test('when pending calls cannot be stored, calls continue, and the person is informed once', async () => {
  const profile = writeProfile(agent);
  writeFileSync(join(dirname(profile), 'waiting'), 'a file, and no folder');
  const mcp = await connected(profile);
  const call = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { title: 'unremembered' } };
  const ids: string[] = [];
  for (let turn = 0; turn < 2; turn++)
    ids.push((await callTool(mcp, 'write_platform', call)).structuredContent.approval_id);
  expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(ids[1]).toBe(ids[0]);
  expect(mcp.stderr().match(/cannot be stored/g)).toHaveLength(1);
});

test('of a pending call only its hash and its reason are stored on disk', async () => {
  const folder = newFolder();
  const profile = writeProfile(agent, folder);
  const mcp = await connected(profile);
  const call = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { title: 'secret-title' } };
  const held = await callTool(mcp, 'write_platform', call);
  expect(held.structuredContent.status).toBe('pending_approval');
  const waiting = join(dirname(profile), 'waiting', 'agent');
  const names = readdirSync(waiting);
  expect(names).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.json$/)]);
  const path = join(waiting, names[0]!);
  expect([statSync(path).mode & 0o777, statSync(waiting).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readFileSync(path, 'utf8')).not.toContain('secret-title');
  await organisation.deny(held.structuredContent.approval_id);
  await callTool(mcp, 'check_approval', { approval_id: held.structuredContent.approval_id });
  expect(readdirSync(waiting)).toEqual([]);
});
