/** Bodies and answers of megabytes: other requests are served while they are read and written. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { Worker } from 'node:worker_threads';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { longJson } from '../../broker/http/reply.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { longestTurn, machineMs, parsingMs } from '../world/longest-turn.ts';
import { browserOf } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';
import { ALLOW_ALL, givenWorld, READ, shared, WRITE } from '../world/world.ts';

const MIB = 1024 * 1024;
const PIECE = 64 * 1024;
/** In units of `machineMs`: 0.3 to 0.5, most of it in `JSON.parse`. Without pauses, 1.5 and more. */
const MAX_TURN_LENGTH = 1;

/** A garbage collection caused by earlier test files counts as part of a turn, so a turn that is too long is measured again. */
const MEASURED = { timeout: scaledTimeout(60_000), retry: 2 };

/** The unit of MAX_TURN_LENGTH. */
let unit: number;
const measureUnit = () => machineMs(Array.from({ length: 5_000 }, (_, i) => `${i} ${'a\n'.repeat(225)}`));
beforeAll(() => {
  unit = measureUnit();
});

/** Other load on a shared machine slows down a turn and the unit alike: a turn that is too long is compared with the current unit. */
function expectShort(longest: number): void {
  if (longest >= MAX_TURN_LENGTH * unit) unit = Math.max(unit, measureUnit());
  expect(longest).toBeLessThan(MAX_TURN_LENGTH * unit);
}

describe('long bodies and answers', MEASURED, () => {
  const world = givenWorld('sqlite');
  const organisation = shared(() => world.organisation());

  /** Sends a body in small pieces, so that sending it does not count. */
  async function post(path: string, body: Buffer): Promise<{ status: number; text: string }> {
    const { broker } = world.running;
    const token = mintOwnerSession(broker, organisation.owner).token;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const asked = request(world.running.baseUrl + path, { method: 'POST', headers });
    const pieces = Array.from({ length: Math.ceil(body.length / PIECE) }, (_, i) =>
      body.subarray(i * PIECE, (i + 1) * PIECE),
    );
    const [[answer]] = await Promise.all([once(asked, 'response'), pipeline(pieces, asked)]);
    return { status: answer.statusCode, text: await textOf(answer) };
  }

  test('large governance files are processed one at a time for each organisation, and another organisation does not wait', async () => {
    const other = await world.organisation();
    const workers = { now: 0, most: 0, started: 0 };
    const started = (worker: Worker) => {
      workers.started++;
      workers.most = Math.max(workers.most, ++workers.now);
      worker.once('exit', () => workers.now--);
    };
    process.on('worker', started);
    onTestFinished(() => void process.off('worker', started));
    const policies = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`p${i}`, { rules: [{ effect: 'deny' }] }]),
    );
    const text = `${JSON.stringify({ policies })} # ${'long '.repeat(16_000)}`;
    expect(text.length).toBeGreaterThan(64 * 1024);
    const plan = (by: typeof other) => expectStatus(200, by.ask('POST', '/owner/governance/plan', { text }));
    const two = [plan(organisation), plan(organisation)];
    await vi.waitUntil(() => workers.now > 0, { timeout: 10_000 });
    await Promise.all([...two, plan(other)]);
    expect(workers).toEqual({ now: 0, most: 2, started: 3 });
  });

  test('clients without a token whose long bodies do not arrive do not delay owners at their address', async () => {
    const { port, host } = new URL(world.running.baseUrl);
    const head = `POST /v1/register HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n`;
    const sockets = Array.from({ length: 4 }, () => connect(Number(port), 'localhost').on('error', () => {}));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    // The broker asks for the body when it reads it.
    for (const socket of sockets) {
      socket.write(head);
      expect(`${(await once(socket, 'data'))[0]}`).toContain('100 Continue');
      socket.write('{');
    }
    const answer = await post('/owner/simulate', Buffer.from(JSON.stringify({ more: 'x'.repeat(100_000) })));
    expect(answer.status, answer.text.slice(0, 200)).toBe(400);
  });

  test('a body of 16 MiB is read in turns that block no other request', async () => {
    // Invalid for the route, so that only reading is measured.
    const body = Buffer.from(JSON.stringify({ text: 1, more: '\n'.repeat(8 * MIB) }));
    let answer = { status: 0, text: '' };
    const longest = await longestTurn(async () => {
      answer = await post('/owner/governance/plan', body);
    });
    expect(answer.text).toContain('invalid_request');
    expectShort(longest);
  });

  test('a million names in an owner’s body are refused before they are parsed into objects', async () => {
    const names = Array.from({ length: 1_000_000 }, (_, i) => `"env:${i.toString(36)}":""`);
    const body = Buffer.from(`{"text":"","values":{${names.join(',')}}}`);
    let answer = { status: 0, text: '' };
    const longest = await longestTurn(async () => {
      answer = await post('/owner/governance/plan', body);
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('its objects have too many members');
    expectShort(longest);
  });

  test('20,000 members of an owner’s body are read, and not every unknown name is explained', async () => {
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, i]));
    // Including name and rules.
    const { status, body } = await organisation.ask('POST', '/owner/policies', { name: 'x', rules: [members(19_998)] });
    expect([status, body.error]).toEqual([400, 'invalid_governance']);
    expect(body.detail).not.toContain('n19997');
    const more = await organisation.ask('POST', '/owner/policies', { name: 'x', rules: [members(19_999)] });
    expect(more.body).toMatchObject({ error: 'invalid_request', detail: expect.stringContaining('too many members') });
    const values = { name: 'x', rules: Array.from({ length: 200_000 }, () => []) };
    const many = await organisation.ask('POST', '/owner/policies', values);
    expect(many.body).toMatchObject({ error: 'invalid_request', detail: expect.stringContaining('too many values') });
  });

  test('holding a call with a hundred thousand names takes turns of one step each', async () => {
    const names = Array.from({ length: 100_000 }, (_, i) => `"${i.toString(36)}":0`);
    const agent = await (await world.demoOrganisation()).agent();
    const asked = JSON.stringify(WRITE).replace('{"title":"x"}', `{${names.join(',')}}`);
    let answer: Answer | undefined;
    const before = process.threadCpuUsage();
    const longest = await longestTurn(async () => {
      answer = await agent.act(asked);
    });
    const { user, system } = process.threadCpuUsage(before);
    expect(answer?.status).toBe(202);
    // The longest step, parsing or hashing, is 0.4 of all the work; hashing and sealing in one turn is 0.6 and more.
    expect(longest).toBeLessThan(0.5 * ((user + system) / 1000));
  });

  test('an answer of 16 MB is built in turns that block no other request', async () => {
    const text = '\n'.repeat(8 * MIB);
    const list = Array.from({ length: 100_000 }, (_, at) => ({
      at,
      details: ['a: 1 → 2', 'b'],
      text: 'a'.repeat(100),
    }));
    const longest = await longestTurn(async () => {
      const { body } = await longJson(200, { text, list });
      expect(Buffer.byteLength(body ?? '')).toBeGreaterThan(20_000_000);
    });
    expectShort(longest);
  });

  test.each([
    ['nothing', {}],
    ['empty members', { list: [], text: '' }],
    ['a short list and text', { list: [1, 'a', null, { b: [] }], text: 'a"\n😀\ud83d' }],
    ['a list that ends with a part', { list: Array.from({ length: 500 }, (_, i) => i), more: 'a' }],
    ['a longer one', { list: Array.from({ length: 501 }, (_, i) => ({ i })) }],
    ['pairs of surrogates where parts end', { a: '😀'.repeat(200_000), b: `a${'😀'.repeat(200_000)}` }],
  ])('an answer that is built in parts equals one that is built at one time: %s', async (_name, value) => {
    expect(String((await longJson(200, value)).body)).toBe(JSON.stringify(value));
  });
});

/** The known worst case of each entry point. */
describe('one request does not block others', MEASURED, () => {
  const world = givenWorld('sqlite');
  let agent: TestAgent;
  let mcpToken: string;
  beforeAll(async () => {
    const organisation = await world.demoOrganisation();
    await organisation.platform({
      id: 'mail',
      manifest: { scopes: { 'mail:send': ['POST /mail'] }, recipients: { 'POST /mail': ['/to'] } },
    });
    const grants = { demo: {}, mail: { constraints: JSON.stringify({ recipients: PEOPLE }) } };
    agent = await organisation.agent({ rules: ALLOW_ALL, grants });
    const asked = { name: 'client', grants: [{ platformId: 'demo', scopes: ['demo:write'] }] };
    mcpToken = (await new OAuthClient(world).tokens(browserOf(world, organisation.owner), {}, asked)).access_token;
  });

  const PEOPLE = Array.from({ length: 500 }, (_, i) => `p${i}@many.example`);
  const FORM = 'application/x-www-form-urlencoded';
  const PARTS = 'multipart/form-data; boundary=b';
  const JSON_TYPE = 'application/json';
  const filled = (piece: string, bytes = MIB - 1_000): string => piece.repeat(bytes / piece.length);
  const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [i.toString(36), 0]));
  const action = (
    data: unknown,
    more: object = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write' },
  ) => JSON.stringify({ ...more, data });
  const mail = { platform: 'mail', endpoint: '/mail', method: 'POST', scope: 'mail:send' };
  const tool = (data: unknown, meta: object = {}) => {
    const call = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data };
    const params = { name: 'write_platform', arguments: call, _meta: meta };
    return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  };
  const questions = Array.from({ length: 100 }, () => ({ action: { name: 'demo:read', properties: names(300) } }));

  test.each<[what: string, status: number, path: string, body: () => string, type?: string]>([
    ['names', 200, '/v1/actions', () => action(names(90_000))],
    ['nested lists', 200, '/v1/actions', () => action({ a: Array(120_000).fill([[[]]]) })],
    ['a text similar to an address', 200, '/v1/actions', () => action({ a: `${filled('a.', 64_000)}@` })],
    ['recipients', 403, '/v1/actions', () => action({ to: filled('x@many.example,') }, mail)],
    ['a form', 200, '/proxy/demo-main/items/1', () => filled('&method'), FORM],
    ['a form with values', 200, '/proxy/demo-main/items/1', () => filled('&a=b'), FORM],
    ['a form of other letters', 200, '/proxy/demo-main/items/1', () => filled('&éé', 500_000), FORM],
    ['boundaries', 200, '/proxy/demo-main/items/1', () => filled('--b'), PARTS],
    ['names of parts', 200, '/proxy/demo-main/items/1', () => filled('--b; name="methods"'), PARTS],
    ['a line of a part', 200, '/proxy/demo-main/items/1', () => `--b\r\na:${filled('\t')}\0\r\n\r\n\r\n--b--`, PARTS],
    ['a long form', 200, '/proxy/demo-main/items/1', () => filled('&method', sized(3, 8) * MIB), FORM],
    ['names at another entry point', 200, '/proxy/demo-main/items/1', () => JSON.stringify(names(90_000)), JSON_TYPE],
    ['the maximum number of values', 200, '/mcp', () => tool({ a: names(9_900) })],
    ['more values than allowed', 400, '/mcp', () => tool({ a: names(90_000) })],
    ['members of _meta', 400, '/mcp', () => tool({}, names(9_900))],
    [
      'access evaluations',
      200,
      '/access/v1/evaluations',
      () => JSON.stringify({ ...ASKED(agent), evaluations: questions }),
    ],
  ])('%s: %i from %s', async (_what, status, path, body, type = JSON_TYPE) => {
    const bytes = Buffer.from(body());
    const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE) }, (_, i) =>
      bytes.subarray(i * PIECE, (i + 1) * PIECE),
    );
    const headers = {
      authorization: `Bearer ${path === '/mcp' ? mcpToken : agent.token()}`,
      accept: 'application/json, text/event-stream',
      'content-type': type,
      'content-length': bytes.length,
    };
    let answered = 0;
    const longest = await longestTurn(async () => {
      const asked = request(world.running.baseUrl + path, {
        method: path.startsWith('/proxy/') ? 'PATCH' : 'POST',
        headers,
      });
      const [[answer]] = await Promise.all([once(asked, 'response'), pipeline(pieces, asked)]);
      answered = answer.statusCode;
      for await (const _ of answer);
    });
    expect(answered).toBe(status);
    // Names miss the processor's caches, so beside other work they take longer than `unit` does: such a turn is compared with names parsed at the same time.
    const most = longest < MAX_TURN_LENGTH * unit ? unit : Math.max(unit, 2 * parsingMs(90_000));
    expect(longest).toBeLessThan(MAX_TURN_LENGTH * most);
  });
});

const ASKED = ({ agentId }: TestAgent) => ({
  subject: { type: 'agent', id: agentId },
  resource: { type: 'platform', id: 'demo' },
});

describe('a long body of an agent that may not call', () => {
  const world = givenWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.02' });
  const organisation = shared(() => world.demoOrganisation());

  /** Announces a body of 1 MiB, and sends none of it. */
  async function announce(agent: TestAgent, more: Record<string, string> = { 'content-length': `${MIB}` }) {
    const headers = { authorization: `Bearer ${agent.token()}`, 'content-type': 'application/json', ...more };
    const asked = request(`${world.running.baseUrl}/v1/actions`, { method: 'POST', headers });
    asked.on('error', () => {});
    asked.flushHeaders();
    const [answer] = await once(asked, 'response');
    const text = await textOf(answer);
    asked.destroy();
    return { status: answer.statusCode as number, body: JSON.parse(text) };
  }

  test.each([
    ['with a Content-Length', undefined],
    ['without a Content-Length', { 'transfer-encoding': 'chunked' }],
  ])('is not awaited when the rate limit is reached, %s', async (_, more) => {
    const agent = await organisation.agent();
    // The limit is 12 a minute.
    for (let calls = 0; calls <= 12; calls++) if ((await agent.act(READ)).status === 429) break;
    const { status, body } = await withoutCalls(world, () => announce(agent, more));
    expect([status, body.error]).toEqual([429, 'rate_limited']);
  });

  test('is not read when the agent is suspended, and the refusal is recorded', async () => {
    const agent = await organisation.agent();
    await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {}));
    const { status, body } = await withoutCalls(world, () => announce(agent));
    expect([status, body.error, body.reason]).toEqual([403, 'agent_halted', 'agent_suspended']);
    const { row } = await evidenceOf(world, agent, body.audit_id);
    expect(row).toMatchObject({ result: 'denied', reason: 'agent_suspended', platform_id: null, method: null });
    // Control: for a short body the row names the request.
    const short = await agent.act(READ);
    const { row: said } = await evidenceOf(world, agent, short.body.audit_id);
    expect(said).toMatchObject({ reason: 'agent_suspended', platform_id: 'demo', method: 'GET' });
  });

  test('is counted once, and decided with the facts about its platform', async () => {
    const agent = await organisation.agent();
    const long = { ...WRITE, method: 'PATCH', endpoint: '/items/7', data: { text: 'a'.repeat(100_000) } };
    const answers = [await agent.act(READ), await agent.act(long), await agent.act(READ)];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
    expect(answers.map((answer) => /r=(\d+)/.exec(answer.headers.get('ratelimit')!)![1])).toEqual(['11', '10', '9']);
  });
});
