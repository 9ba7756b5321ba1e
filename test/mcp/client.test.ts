/** The typed client against a real broker, and against connections that fail. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { connectAgent } from '../../mcp/client/connect-agent.ts';
import { AgentKeyError } from '../../mcp/client/signer.ts';
import { expectStatus, makeKeyPair, type TestAgent } from '../world/agent.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { approveWith, enrol } from '../world/passkeys.ts';
import { givenWorld, shared } from '../world/world.ts';

const READ = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' } as const;
const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } } as const;

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent());
beforeEach(() => {
  world.upstream.answer = undefined;
});

const keyOf = ({ agentId, ownerId, keys }: TestAgent) => ({
  agentId,
  ownerId,
  privateKey: keys.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
});
const clientOf = (of: TestAgent, url = of.baseUrl) => connectAgent({ url, ...keyOf(of) });

describe('outcomes of a call', () => {
  test('an answered call has the platform’s status, and all digits of its numbers', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(404, { 'content-type': 'application/json', 'retry-after': '5', 'x-other': 'x' });
      response.end('{"id": 12345678901234567890, "small": 42, "part": 0.1, "text": "12345678901234567890"}');
    };
    const outcome = await clientOf(agent).call(READ);
    expect(outcome).toMatchObject({ kind: 'answered', upstreamStatus: 404, headers: { 'retry-after': '5' } });
    expect(outcome).toMatchObject({ repeated: false });
    const text = '12345678901234567890';
    expect(outcome.kind === 'answered' && outcome.data).toEqual({ id: text, small: 42, part: 0.1, text });
  });

  test('a held call can be awaited: result, note and the receipt of the audit row', async () => {
    const client = clientOf(agent);
    const key = await enrol(world, organisation);
    const outcome = await client.call(WRITE, { idempotencyKey: 'client-1' });
    if (outcome.kind !== 'held') throw new Error(outcome.kind);
    expect(outcome.approvalUrl).toBe(`${agent.baseUrl}/approve/${outcome.approvalId}`);
    const again = await client.call(WRITE, { idempotencyKey: 'client-1' });
    expect(again).toMatchObject({ kind: 'held', approvalId: outcome.approvalId, repeated: true });
    const listed = await client.pendingActions();
    expect(listed.ok && listed.value.pending.map(({ approval_id }) => approval_id)).toEqual([outcome.approvalId]);
    expect(await client.settled(outcome.approvalId, { timeoutSeconds: 0 })).toMatchObject({
      ok: true,
      value: { state: 'pending', approvalUrl: outcome.approvalUrl },
    });

    const waiting = client.settled(outcome.approvalId);
    await expectStatus(200, approveWith(world, outcome.approvalId, key));
    const settled = await waiting;
    if (!settled.ok || settled.value.state !== 'done') throw new Error(JSON.stringify(settled));
    expect(settled.value.result).toMatchObject({ status: 200, data: { method: 'POST', target: '/v1/items' } });

    const receipt = await client.receipt(settled.value.auditId!);
    if (!receipt.ok) throw receipt.error;
    const keys = (await (await fetch(receipt.value.jwks_url)).json()) as JSONWebKeySet;
    await compactVerify(receipt.value.receipt, createLocalJWKSet(keys));
  });

  test('a refused call has the reason and whether an access request may help; a halted agent gets the halt', async () => {
    const refused = await clientOf(agent).call({ ...READ, endpoint: '/elsewhere' });
    expect(refused).toMatchObject({ kind: 'denied', reason: 'endpoint_scope_mismatch', requestable: false });
    const unknown = await clientOf(agent).call({ ...READ, platform: 'nowhere' });
    expect(unknown).toMatchObject({
      kind: 'denied',
      reason: 'no_permission_record',
      requestable: false,
      notGrantable: true,
    });

    const other = await organisation.agent();
    await organisation.ask('POST', `/owner/agents/${other.agentId}/suspend`, { reason: 'Stop until Monday.' });
    const halted = await clientOf(other).call(READ);
    expect(halted).toMatchObject({ kind: 'halted', halt: { state: 'suspended', detail: 'Stop until Monday.' } });
    const me = await clientOf(other).me();
    expect(me).toMatchObject({ ok: true, value: { agent_status: 'suspended', halt: { state: 'suspended' } } });
    expect(await clientOf(other).permissions()).toMatchObject({ ok: false, error: { code: 'agent_halted' } });
  });

  test('a call is not ready when the platform has to be connected first', async () => {
    const elsewhere = await world.organisation();
    await elsewhere.platform({ secret: null });
    const outcome = await clientOf(await elsewhere.agent()).call(READ);
    expect(outcome).toMatchObject({ kind: 'not_ready', code: 'platform_not_connected' });
  });

  test('a failed call has the error code of the envelope', async () => {
    const wrong = await clientOf(agent).call({ ...READ, endpoint: '//x' });
    expect(wrong).toMatchObject({
      kind: 'failed',
      error: { code: 'invalid_endpoint', status: 400, mayHaveActed: false },
    });
    const stranger = connectAgent({ url: agent.baseUrl, ...keyOf(agent), agentId: 'agt_00000000000000000000' });
    expect(await stranger.call(READ)).toMatchObject({
      kind: 'failed',
      error: { code: 'invalid_signature', status: 401 },
    });
    world.upstream.answer = (request) => request.socket.destroy();
    const lost = await clientOf(agent).call({ ...WRITE, method: 'PATCH', endpoint: '/items/1' });
    expect(lost).toMatchObject({ kind: 'failed', error: { code: 'upstream_unreachable', mayHaveActed: true } });
    expect(await clientOf(agent).approval('none')).toMatchObject({ ok: false, error: { code: 'invalid_id' } });
  });
});

test('permissions are requested with their ETag, and an unchanged answer returns the cached value', async () => {
  const client = clientOf(agent);
  const first = await client.permissions();
  expect(first).toMatchObject({
    ok: true,
    value: { changed: true, permissions: { platforms: [{ platformId: 'demo' }] } },
  });
  const second = await client.permissions();
  expect(second).toMatchObject({ ok: true, value: { changed: false } });
  expect(first.ok && second.ok && second.value.permissions).toBe(first.ok && first.value.permissions);
});

test('a repeated access request returns the pending one, and a long poll returns its decision', async () => {
  const policy = await organisation.policy([{ effect: 'allow' }]);
  const lacking = clientOf(await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } }));
  const asked = await lacking.requestAccess({ platform: 'demo', scope: 'demo:delete', reason: 'To tidy up.' });
  const again = await lacking.requestAccess({ platform: 'demo', scope: 'demo:delete' });
  if (!asked.ok || !again.ok) throw new Error('refused');
  expect(asked.value.reasonCode).toBe('not_granted');
  expect(again.value.requestToken).toBe(asked.value.requestToken);
  const waiting = lacking.accessRequest(asked.value.requestToken, { waitSeconds: 20 });
  const { body } = await organisation.ask('GET', '/owner/access-requests');
  const path = `/owner/access-requests/${body.access_requests[0].request_id}/deny`;
  await expectStatus(200, organisation.ask('POST', path, { note: 'Not now.' }));
  expect(await waiting).toEqual({ ok: true, value: { status: 'denied', note: 'Not now.' } });
});

test('a child is issued with fewer permissions than its parent, and calls with its own token', async () => {
  const issued = await clientOf(agent).issueChild({
    name: 'reader',
    ttl_seconds: 600,
    grants: [{ platform: 'demo', scopes: ['demo:read'] }],
  });
  if (!issued.ok) throw issued.error;
  expect(issued.value.granted).toMatchObject([{ platform: 'demo', scopes: ['demo:read'] }]);
  const child = connectAgent({ url: agent.baseUrl, bearer: issued.value.bearer_token });
  expect(await child.call(READ)).toMatchObject({ kind: 'answered' });
  expect(await child.call({ ...WRITE, method: 'PATCH', endpoint: '/items/1' })).toMatchObject({ kind: 'denied' });
  expect(await child.me()).toMatchObject({ ok: true, value: { agent_id: issued.value.child_agent_id } });
  const none = await clientOf(agent).issueChild({ grants: [{ platform: 'demo', scopes: ['demo:none'] }] });
  expect(none).toMatchObject({ ok: false, error: { status: 400 } });
});

test('a report reaches the owners', async () => {
  const sent = await clientOf(agent).report({ message: 'That was odd.', severity: 'warning' });
  if (!sent.ok) throw sent.error;
  const { body } = await organisation.ask('GET', '/owner/diagnostics');
  expect(body.diagnostics.map(({ id }: { id: string }) => id)).toContain(sent.value.id);
});

test('a key that cannot sign is rejected before anything is sent', () => {
  for (const privateKey of ['', 'none', makeKeyPair().publicPem])
    expect(() => connectAgent({ url: agent.baseUrl, agentId: 'a', ownerId: 'b', privateKey })).toThrow(AgentKeyError);
});

describe('with a failing connection', () => {
  let seen: IncomingMessage[];
  let sockets: Set<unknown>;
  let behave: (request: IncomingMessage, response: ServerResponse) => void;
  let server: Server;
  let url: string;
  beforeEach(async () => {
    seen = [];
    sockets = new Set();
    server = createServer((request, response) => {
      seen.push(request);
      sockets.add(request.socket);
      request.resume().on('end', () => behave(request, response));
    });
    const port = await listenOnLoopback(server);
    url = `http://127.0.0.1:${port}`;
  });
  const answer = (response: ServerResponse, body: unknown, status = 200) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };

  test('a read is sent three times at most; a write is sent once, and its error says that it may have been made', async () => {
    behave = (request) => request.socket.destroy();
    const read = await clientOf(agent, url).call(READ);
    expect(read).toMatchObject({ kind: 'failed', error: { code: 'unreachable', mayHaveActed: false } });
    expect(seen.length).toBe(3);
    const write = await clientOf(agent, url).call(WRITE);
    expect(write).toMatchObject({ kind: 'failed', error: { code: 'unreachable', mayHaveActed: true } });
    expect(seen.length).toBe(4);
  });

  test('a read that fails twice and then succeeds is answered, with a new token for each attempt', async () => {
    behave = (request, response) => {
      if (seen.length < 3) request.socket.destroy();
      else answer(response, { data: { ok: true }, _meta: { audit_id: 'x', upstream_status: 200 } });
    };
    expect(await clientOf(agent, url).call(READ)).toMatchObject({ kind: 'answered', data: { ok: true } });
    for (const { headers } of seen) expect(headers.authorization).toMatch(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/);
  });

  test('a response that does not come from a broker is an error, for every method of the client', async () => {
    for (const [status, body] of [
      [200, { hello: 'world' }],
      [502, {}],
      [302, {}],
      [413, {}],
    ] as const) {
      behave = (_request, response) => answer(response, body, status);
      const error = { code: 'unexpected_answer', status };
      expect(await clientOf(agent, url).call(READ)).toMatchObject({ error: { ...error, mayHaveActed: false } });
      // A proxy may have forwarded the request, unless it refused it.
      const mayHaveActed = status !== 413;
      expect(await clientOf(agent, url).call(WRITE)).toMatchObject({ error: { ...error, mayHaveActed } });
      const client = clientOf(agent, url);
      for (const asked of [
        client.me(),
        client.pendingActions(),
        client.issueChild({ grants: [] }),
        client.receipt('r1'),
        client.report({ message: 'odd' }),
        client.permissions(),
        client.settled('a1', { timeoutSeconds: 0 }),
        client.requestAccess({ platform: 'demo' }),
        client.accessRequest('t1'),
        client.startConsent({ platform: 'demo', caller: { source: 'slack', id: 'U1' } }),
        client.consent('c1'),
      ])
        expect(await asked).toMatchObject({ ok: false, error });
    }
  });

  test('a request that cannot be written is not sent, and is not reported as a broker that does not answer', async () => {
    const circular: Record<string, unknown> = {};
    circular.itself = circular;
    const client = clientOf(agent, url);
    const error = { code: 'invalid_request', status: undefined, mayHaveActed: false };
    for (const [outcome, words] of [
      [await client.call({ ...WRITE, data: { amount: 10n } }), 'BigInt'],
      [await client.call({ ...WRITE, data: circular }), 'circular'],
      [await client.call(WRITE, { idempotencyKey: 'line\nfeed' }), 'idempotency-key'],
      [await client.call(READ, { idempotencyKey: '\u{1F511}' }), 'idempotency-key'],
      [await connectAgent({ url, bearer: 'b', session: '\u{1F511}' }).call(READ), 'x-svc-session'],
    ] as const) {
      expect(outcome).toMatchObject({ kind: 'failed', error });
      expect(outcome.kind === 'failed' && outcome.error.message).toContain(words);
    }
    expect(seen.length).toBe(0);
  });

  test('waiting for a held call goes on while the broker is unavailable, and ends with its time or an error that does not pass', async () => {
    const pending = { approval_id: 'a1', status: 'pending', created_at: '', expires_at: '' };
    behave = (request, response) => {
      // Three attempts of the read, then a proxy without a broker behind it, then the broker again.
      if (seen.length <= 3) request.socket.destroy();
      else if (seen.length === 4) answer(response, {}, 502);
      else answer(response, { ...pending, status: 'denied', note: 'No.' });
    };
    const client = clientOf(agent, url);
    expect(await client.settled('a1', { timeoutSeconds: 30 })).toMatchObject({
      ok: true,
      value: { state: 'denied', note: 'No.' },
    });
    expect(seen.length).toBe(5);

    behave = (_request, response) => answer(response, {}, 502);
    expect(await client.settled('a1', { timeoutSeconds: 1 })).toMatchObject({
      ok: false,
      error: { code: 'unexpected_answer', status: 502 },
    });
    const before = seen.length;
    behave = (_request, response) => answer(response, { error: 'not_found' }, 404);
    expect(await client.settled('a1')).toMatchObject({ ok: false, error: { code: 'not_found' } });
    expect(seen.length).toBe(before + 1);
  });

  test('a wait that is aborted during an outage throws the signal’s reason', async () => {
    behave = (request) => request.socket.destroy();
    const reason = new Error('enough');
    const given = new AbortController();
    const waiting = clientOf(agent, url).settled('a1', { signal: given.signal });
    setTimeout(() => given.abort(reason), 50);
    await expect(waiting).rejects.toBe(reason);
  });

  test('a refused connection reports that nothing was sent', async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
    const write = await clientOf(agent, url).call(WRITE);
    expect(write).toMatchObject({ kind: 'failed', error: { code: 'unreachable', mayHaveActed: false } });
    expect(write.kind === 'failed' && write.error.message).toContain('ECONNREFUSED');
  });

  test('a failed TLS handshake reports that nothing was sent', async () => {
    let taken = 0;
    const closing = createTcpServer((socket) => {
      taken++;
      socket.once('data', () => socket.destroy());
    });
    const hanging = await listenOnLoopback(closing);
    for (const address of [url.replace('http:', 'https:'), `https://127.0.0.1:${hanging}`]) {
      const write = await clientOf(agent, address).call(WRITE);
      expect(write, address).toMatchObject({ kind: 'failed', error: { code: 'unreachable', mayHaveActed: false } });
    }
    expect([taken, seen.length]).toEqual([1, 0]);
  });

  test('one connection is reused for many calls, and an aborted call throws the signal’s reason', async () => {
    behave = (_request, response) => answer(response, { data: 1, _meta: {} });
    const client = clientOf(agent, url);
    for (let turn = 0; turn < 20; turn++) await client.call(READ);
    expect(seen.length).toBe(20);
    // One connection, or a second one that was opened before the first was idle again.
    expect(sockets.size).toBeLessThanOrEqual(2);
    const reason = new Error('enough');
    behave = () => {};
    const given = new AbortController();
    const waiting = client.approval('x', { waitSeconds: 50, signal: given.signal });
    given.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  test('a child’s client sends the issued token unchanged, and its session', async () => {
    behave = (_request, response) => answer(response, { data: 1, _meta: {} });
    await connectAgent({ url, bearer: 'child-token', session: 's1' }).call(READ);
    expect(seen[0]!.headers).toMatchObject({ authorization: 'Bearer child-token', 'x-svc-session': 's1' });
  });
});
