/** Answers in flight of an agent that loses its access: cut within two seconds, distinguishable from complete ones, and recorded as cut. */
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { expectStatus, jsonPost, makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { startReplica } from '../world/replica.ts';
import { listAuditRows } from '../world/rows.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { type LyingProvider, startLyingProvider } from '../world/servers/lying-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, DEMO_SCOPES, type Organisation, startWorld, type World } from '../world/world.ts';

/** Two seconds, plus a margin for a loaded machine. */
const SOON_MS = 3_500;
const LONG = { timeout: scaledTimeout(30_000) };
const STREAM = '/proxy/demo-main/items/stream';

type Reading = {
  auditId: string;
  text: () => string;
  /** How the answer ended: the error code, or `whole`; and when. */
  ended: Promise<{ how: string; at: number }>;
};

/** Starts reading, and resolves after the first piece. */
async function read(agent: TestAgent, path: string, bearer = agent.token()): Promise<Reading> {
  const { hostname, port } = new URL(agent.baseUrl);
  const headers = { authorization: `Bearer ${bearer}` };
  const asking = http.request({ hostname, port, path, headers, agent: false }).end();
  onTestFinished(() => void asking.destroy());
  // Also reported to the reader of the answer.
  asking.on('error', () => {});
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  let text = '';
  response.on('data', (piece) => {
    text += String(piece);
  });
  const ended = new Promise<{ how: string; at: number }>((resolve) => {
    const over = (how: string) => resolve({ how, at: performance.now() });
    response.on('end', () => over('whole'));
    response.on('error', (error: NodeJS.ErrnoException) => over(error.code ?? error.message));
  });
  await once(response, 'data');
  return { auditId: String(response.headers['x-svc-audit-id']), text: () => text, ended };
}

describe.each(ONE_STORE)(`an agent that loses its access on %s${postgresNote}`, LONG, (store) => {
  let world: World;
  let issuer: LyingProvider;
  let address = '';
  /** Streams that the platform is answering now, by path. */
  const answering = new Map<string, number>();
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  beforeAll(async () => {
    const server = http.createServer((request, response) => {
      const path = request.url ?? '';
      if (!path.startsWith('/items/stream')) return answer(request, response);
      answering.set(path, (answering.get(path) ?? 0) + 1);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const more = setInterval(() => response.write('data: more\n\n'), 100);
      response.on('close', () => {
        clearInterval(more);
        answering.set(path, (answering.get(path) ?? 0) - 1);
      });
    });
    const port = await listenOnLoopback(server);
    address = `127.0.0.1:${port}`;
    issuer = await startLyingProvider();
    world = await startWorld(store, {
      AGENT_BROKER_ALLOW_PRIVATE: [address, new URL(issuer.issuer).host].join(),
    });
  });

  async function demo(): Promise<{ organisation: Organisation; agent: TestAgent }> {
    const organisation = await world.organisation({ rules: ALLOW_ALL });
    await organisation.platform({ manifest: { base_url: `http://${address}` } });
    return { organisation, agent: await organisation.agent({ rules: ALLOW_ALL }) };
  }
  const held = () => world.running.services.budget.held;
  /** Number of calls that can be stopped, and are not stopped yet. */
  const underWay = () => world.running.services.budget.underWay(Number.POSITIVE_INFINITY).length;
  const flagsOf = ({ flags }: { flags: string | null }) => JSON.parse(flags ?? '{}');
  async function rowOf({ id }: Organisation, auditId: string) {
    const rows = await listAuditRows(world.db, id, { limit: 100 });
    return rows.find((row) => row.id === auditId)!;
  }
  /** Expects the answer to be reset soon, and to be recorded as cut for this reason. */
  async function isCut(organisation: Organisation, reading: Reading, because: string): Promise<void> {
    const began = performance.now();
    const { how, at } = await reading.ended;
    expect(how).toBe('ECONNRESET');
    expect(at - began).toBeLessThan(scaledTimeout(SOON_MS));
    await expect.poll(async () => (await rowOf(organisation, reading.auditId)).state).toBe('final');
    const flags = flagsOf(await rowOf(organisation, reading.auditId));
    expect(flags).toMatchObject({ ended: 'access_ended', ended_because: because });
  }
  const suspend = (organisation: Organisation, agent: TestAgent) =>
    organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, { reason: 'enough' });
  const grantOf = (agent: TestAgent) => `/owner/agents/${agent.agentId}/grants/demo`;

  test('every change that ends the access cuts the agent’s streams; streams of others continue, and a policy change cuts none', async () => {
    const changes: Record<string, (organisation: Organisation, agent: TestAgent) => Promise<string>> = {
      suspended: async (organisation, agent) => {
        await suspend(organisation, agent);
        return 'agent_suspended';
      },
      revoked: async (organisation, agent) => {
        await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
        return 'agent_revoked';
      },
      deleted: async (organisation, agent) => {
        await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
        expect((await organisation.ask('POST', `/owner/agents/${agent.agentId}/delete`, {})).status).toBe(200);
        return 'agent_revoked';
      },
      'all stopped': async (organisation) => {
        expect((await organisation.ask('POST', '/owner/agents/suspend-all', {})).status).toBe(200);
        return 'agent_suspended';
      },
      'the platform suspended': async (organisation) => {
        expect((await organisation.ask('POST', '/owner/platforms/demo/suspend')).status).toBe(200);
        return 'platform_suspended';
      },
      'the grant removed': async (organisation, agent) => {
        expect((await organisation.ask('DELETE', grantOf(agent))).status).toBeLessThan(300);
        return 'no_permission_record';
      },
      'the connection removed': async (organisation) => {
        const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
        expect((await organisation.ask('DELETE', `/owner/connections/${connections[0].id}`)).status).toBeLessThan(300);
        return 'no_permission_record';
      },
      'the grant narrowed': async (organisation, agent) => {
        const change = { scopes: ['demo:write'] };
        expect((await organisation.ask('POST', grantOf(agent), change)).status).toBe(200);
        return 'scope_not_granted';
      },
    };
    const cut = Object.entries(changes).map(async ([name, change]) => {
      const { organisation, agent } = await demo();
      const neighbour = await organisation.agent({ rules: ALLOW_ALL });
      const path = `${STREAM}-${name.replaceAll(' ', '-')}`;
      const reading = await read(agent, path);
      const other = await read(neighbour, `${STREAM}-neighbour`);
      const reason = await change(organisation, agent);
      const began = performance.now();
      const { how, at } = await reading.ended;
      expect([name, how]).toEqual([name, 'ECONNRESET']);
      expect(at - began, name).toBeLessThan(scaledTimeout(SOON_MS));
      await expect.poll(() => answering.get(path.slice('/proxy/demo-main'.length)), { timeout: 2_000 }).toBe(0);
      await expect.poll(async () => (await rowOf(organisation, reading.auditId)).state).toBe('final');
      const row = await rowOf(organisation, reading.auditId);
      expect(row).toMatchObject({ result: 'allowed', upstream_status: 200 });
      const flags = flagsOf(row);
      expect([name, flags.ended, flags.ended_because]).toEqual([name, 'access_ended', reason]);
      expect(flags.answer_bytes).toBeGreaterThanOrEqual(reading.text().length);
      if (name === 'suspended') await evidenceOf(world, agent, row.id);
      if (['all stopped', 'the platform suspended', 'the connection removed'].includes(name)) return;
      const soFar = other.text().length;
      await expect.poll(() => other.text().length).toBeGreaterThan(soFar);
    });

    const { organisation, agent } = await demo();
    const going = await read(agent, STREAM);
    const policy = await organisation.policy([{ effect: 'deny' }]);
    await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.agentId}/policy`, { policy }));
    await organisation.guardrails([{ name: 'none', effect: 'deny' }]);
    await Promise.all(cut);
    const soFar = going.text().length;
    await expect.poll(() => going.text().length).toBeGreaterThan(soFar);
    await suspend(organisation, agent);
    expect((await going.ended).how).toBe('ECONNRESET');
  });

  test('the expiry of a grant, an agent or a parent cuts streams too', async () => {
    const { organisation, agent: parent } = await demo();
    const soon = world.running.broker.clock() + scaledTimeout(3_000);
    const grants = { demo: { scopeList: Object.keys(DEMO_SCOPES), expires_at: soon } };
    const ending = await organisation.agent({ rules: ALLOW_ALL, grants });
    const child = await childOf(world, organisation, parent);
    const mortal = await organisation.agent({ rules: ALLOW_ALL, agent: { expires_at: soon } });
    const readings = await Promise.all([ending, mortal, child].map((one) => read(one, STREAM)));
    await suspend(organisation, parent);
    const ends = await Promise.all(readings.map(({ ended }) => ended));
    expect(ends.map(({ how }) => how)).toEqual(Array(3).fill('ECONNRESET'));
    const because = async ({ auditId }: Reading) => {
      await expect.poll(async () => (await rowOf(organisation, auditId)).state).toBe('final');
      return flagsOf(await rowOf(organisation, auditId)).ended_because;
    };
    expect(await Promise.all(readings.map(because))).toEqual(['grant_expired', 'agent_revoked', 'agent_suspended']);
  });

  test('a client whose answer ends with the connection is reset', async () => {
    const { organisation, agent } = await demo();
    const socket = connect(Number(new URL(agent.baseUrl).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(`GET ${STREAM} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer ${agent.token()}\r\n\r\n`);
    const error = once(socket, 'error').catch((thrown) => [thrown]);
    let text = '';
    socket.on('data', (piece) => {
      text += piece.toString();
    });
    await expect.poll(() => text).toContain('data: more');
    expect(text.toLowerCase()).not.toContain('transfer-encoding');
    await suspend(organisation, agent);
    expect((await error)[0].code).toBe('ECONNRESET');
  });

  test('a client that reads nothing leaves no call behind', async () => {
    const { organisation, agent } = await demo();
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': 64 * 1024 * 1024 });
      const piece = Buffer.alloc(64 * 1024);
      const fill = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', fill);
      fill();
    };
    const socket = connect(Number(new URL(agent.baseUrl).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const path = '/proxy/demo-main/items/large';
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${agent.token()}\r\n\r\n`);
    await expect.poll(() => held().bytes, { timeout: 5_000 }).toBeGreaterThan(100_000);
    await suspend(organisation, agent);
    await expect.poll(held, { timeout: SOON_MS }).toEqual({ calls: 0, bytes: 0 });
    const [row] = (await listAuditRows(world.db, organisation.id, { limit: 10 })).filter(
      ({ kind }) => kind === 'action',
    );
    expect(flagsOf(row!)).toMatchObject({ ended: 'access_ended', ended_because: 'agent_suspended' });
    expect(flagsOf(row!).answer_bytes).toBeLessThan(64 * 1024 * 1024);
  });

  test('a request that is being uploaded, or not answered yet, is aborted, and refused like the next one', async () => {
    const { organisation, agent } = await demo();
    const begun = new Set<string>();
    const broken: string[] = [];
    answer = (request, response) => {
      begun.add(request.method ?? '');
      request.on('data', () => {});
      response.on('close', () => broken.push(`${request.method} ${request.complete ? 'whole' : 'cut'}`));
    };
    const { hostname, port } = new URL(agent.baseUrl);
    const asking = http.request({
      hostname,
      port,
      path: '/proxy/demo-main/items',
      method: 'POST',
      headers: { authorization: `Bearer ${agent.token()}`, 'content-type': 'application/octet-stream' },
    });
    onTestFinished(() => void asking.destroy());
    asking.on('error', () => {});
    const sending = setInterval(() => asking.write(Buffer.alloc(100_000)), 20);
    onTestFinished(() => clearInterval(sending));
    const waiting = fetch(`${agent.baseUrl}/proxy/demo-main/items/1`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    await expect.poll(() => begun.size, { timeout: 10_000 }).toBe(2);
    expect(held().calls).toBe(2);
    const answered = once(asking, 'response') as Promise<[IncomingMessage]>;
    await suspend(organisation, agent);
    const [response] = await answered;
    clearInterval(sending);
    const told = JSON.parse((await response.setEncoding('utf8').toArray()).join(''));
    expect([response.statusCode, told.error, told.reason], told.detail).toEqual([
      403,
      'agent_halted',
      'agent_suspended',
    ]);
    expect(told.detail).toContain('may have been made');
    const got = await waiting;
    expect([got.status, ((await got.json()) as { reason: string }).reason]).toEqual([403, 'agent_suspended']);
    await expect.poll(() => broken.sort()).toEqual(['GET whole', 'POST cut']);
    await expect.poll(held).toEqual({ calls: 0, bytes: 0 });
    const row = await rowOf(organisation, told.audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
    expect(flagsOf(row)).toMatchObject({
      code: 'access_ended',
      outcome: 'unknown',
      ended: 'access_ended',
      ended_because: 'agent_suspended',
    });
  });

  test('POST /v1/actions: the call is completed and recorded; its answer is withheld until the agent has access again', async () => {
    const { organisation, agent } = await demo();
    const responses: ServerResponse[] = [];
    answer = (request, response) => {
      request.resume();
      response.setHeader('content-type', 'application/json');
      responses.push(response);
    };
    const write = { platform: 'demo', scope: 'demo:write', method: 'POST', endpoint: '/items', data: { a: 1 } };
    const headers = { 'idempotency-key': 'once', 'content-type': 'application/json' };
    const ask = () => agent.request('POST', '/v1/actions', { body: JSON.stringify(write), headers });
    const asked = ask();
    await expect.poll(() => responses.length).toBe(1);
    await suspend(organisation, agent);
    await expect.poll(underWay, { timeout: SOON_MS }).toBe(0);
    responses[0]!.end('{"secret":"of the platform"}');
    const refused = await asked;
    expect([refused.status, refused.body.error, refused.body.reason]).toEqual([403, 'agent_halted', 'agent_suspended']);
    expect(refused.text).not.toContain('of the platform');
    const { row } = await evidenceOf(world, agent, refused.body.audit_id);
    expect(row).toMatchObject({ result: 'allowed', upstream_status: 200 });
    expect(flagsOf(row)).toMatchObject({ ended: 'access_ended', ended_because: 'agent_suspended' });
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    const again = await ask();
    expect([again.status, again.body.data]).toEqual([200, { secret: 'of the platform' }]);
    expect(responses).toHaveLength(1);
    await expect.poll(held).toEqual({ calls: 0, bytes: 0 });
  });

  test('a static key that is revoked or expires: its streams are cut, but not those of the agent itself', async () => {
    const { organisation, agent } = await demo();
    const issue = async (wanted: object = {}) => {
      const asked = { label: 'old client', connection: 'demo-main', ...wanted };
      const made = await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, asked);
      expect(made.status, made.text).toBe(200);
      return made.body as { id: string; key: string };
    };
    const [revoked, expiring, kept] = [await issue(), await issue({ expires_in_seconds: 3600 }), await issue()];
    const [one, two, three] = await Promise.all(
      [revoked, expiring, kept].map(({ key }, i) => read(agent, `${STREAM}-key${i}`, key)),
    );
    const signed = await read(agent, `${STREAM}-signed`);
    const ended = (reading: Reading) => isCut(organisation, reading, 'static_key_ended');
    const path = `/owner/agents/${agent.agentId}/static-keys/${revoked.id}`;
    expect((await organisation.ask('DELETE', path)).status).toBeLessThan(300);
    await ended(one!);
    await world.db.updateTable('static_keys').set({ expires_at: 1 }).where('id', '=', expiring.id).execute();
    await ended(two!);
    for (const reading of [three!, signed]) {
      const soFar = reading.text().length;
      await expect.poll(() => reading.text().length).toBeGreaterThan(soFar);
    }
    await suspend(organisation, agent);
    await Promise.all([three!.ended, signed.ended]);
  });

  test('a removed workload of an agent: its streams are cut, but not those of the agent itself', async () => {
    const { organisation, agent } = await demo();
    const path = `/owner/agents/${agent.agentId}/workload`;
    const set = await expectStatus(200, organisation.ask('POST', path, { issuer: issuer.issuer, subject: 'sweeper' }));
    const token = await issuer.sign(issuer.honest({ aud: set.body.audience, sub: 'sweeper' }));
    const theirs = await read(agent, `${STREAM}-workload`, token);
    const signed = await read(agent, `${STREAM}-signed`);
    expect((await organisation.ask('DELETE', path)).status).toBe(200);
    await isCut(organisation, theirs, 'workload_ended');
    const soFar = signed.text().length;
    await expect.poll(() => signed.text().length).toBeGreaterThan(soFar);
    await suspend(organisation, agent);
    await signed.ended;
  });

  test('a replaced key: streams signed with it are cut, but not those with a static key', async () => {
    const { organisation, agent } = await demo();
    const key = await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, {
      label: 'old client',
      connection: 'demo-main',
    });
    const kept = await read(agent, `${STREAM}-kept`, key.body.key);
    const signed = await read(agent, `${STREAM}-signed`);
    const { publicPem: public_key_pem } = makeKeyPair();
    const bootstrap = `/owner/agents/${agent.agentId}/bootstrap-token`;
    const { bootstrap_token } = (await organisation.ask('POST', bootstrap, { rotate: true })).body;
    await expectStatus(200, send(`${agent.baseUrl}/v1/agents/bind`, jsonPost({ bootstrap_token, public_key_pem })));
    await isCut(organisation, signed, 'agent_key_ended');
    const soFar = kept.text().length;
    await expect.poll(() => kept.text().length).toBeGreaterThan(soFar);
    await suspend(organisation, agent);
    await kept.ended;
  });

  test.each([
    ['a tool of /mcp: the same', '/owner/agents/suspend-all', 'agent_suspended'],
    ['a tool of an MCP client whose access is revoked', '/owner/mcp-authorisations/', 'no_permission_record'],
  ])('%s', async (_, ending, reason) => {
    const { organisation } = await demo();
    let response: ServerResponse | undefined;
    answer = (_, asked) => {
      response = asked;
    };
    const decision = { name: 'desktop', grants: [{ platformId: 'demo', scopes: ['demo:read'] }] };
    const client = new OAuthClient(world);
    const { access_token: token } = await client.tokens(browserOf(world, organisation.owner), {}, decision);
    const called = callMcp(world.running.baseUrl, token, {
      method: 'tools/call',
      params: {
        name: 'read_platform',
        arguments: { platform: 'demo', endpoint: '/items/1', scope: 'demo:read' },
      },
    });
    await expect.poll(() => response).toBeDefined();
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    const end = ending.endsWith('/')
      ? organisation.ask('DELETE', `${ending}${authorisations[0].id}`)
      : organisation.ask('POST', ending, {});
    expect((await end).status).toBeLessThan(300);
    await expect.poll(underWay, { timeout: SOON_MS }).toBe(0);
    response!.setHeader('content-type', 'application/json').end('{"secret":"of the platform"}');
    const { text } = await called;
    expect(text).toContain(reason);
    expect(text).not.toContain('of the platform');
  });

  test('with a hundred streams the watch takes a few statements a second, and only the streams of one agent are cut', async () => {
    await expect.poll(held, { timeout: 5_000 }).toEqual({ calls: 0, bytes: 0 });
    const { organisation, agent } = await demo();
    const others = await Promise.all(Array.from({ length: 4 }, () => organisation.agent({ rules: ALLOW_ALL })));
    const readings = await Promise.all(
      Array.from({ length: 100 }, (_, at) => read(at % 5 === 0 ? agent : others[at % 4]!, STREAM)),
    );
    const { store } = world.running.broker;
    const { read: ask } = store;
    const asked: string[] = [];
    store.read = (statement, values) => {
      asked.push(statement.name);
      return ask.call(store, statement, values);
    };
    onTestFinished(() => {
      store.read = ask;
    });
    await pause(3_000);
    // All streams are checked with a few small statements a second.
    expect(asked.length, asked.join()).toBeLessThan(20);
    // The full facts are read once per agent, because nothing changes.
    expect(asked.filter((name) => !name.startsWith('fact_version')).length).toBeLessThanOrEqual(5);
    await suspend(organisation, agent);
    const mine = readings.filter((_, at) => at % 5 === 0);
    const theirs = readings.filter((_, at) => at % 5 !== 0);
    const ends = await Promise.all(mine.map(({ ended }) => ended));
    expect(ends.map(({ how }) => how)).toEqual(mine.map(() => 'ECONNRESET'));
    const before = theirs.map(({ text }) => text().length);
    await pause(500);
    for (const [at, { text }] of theirs.entries()) expect(text().length).toBeGreaterThan(before[at]!);
    await expect.poll(() => held().calls, { timeout: 5_000 }).toBe(80);
    await Promise.all(others.map((other) => suspend(organisation, other)));
    await Promise.all(theirs.map(({ ended }) => ended));
    await expect.poll(held).toEqual({ calls: 0, bytes: 0 });
    await expect.poll(() => answering.get(STREAM.slice('/proxy/demo-main'.length))).toBe(0);
  });

  test.runIf(store === 'postgres')(
    'MR-08 streams are cut at another replica than the one that made the change',
    async () => {
      const { organisation, agent } = await demo();
      const replica = await startReplica(world);
      onTestFinished(() => replica.process.signal('SIGKILL'));
      const reading = await read(replica.asks(agent), `${STREAM}-elsewhere`);
      await pause(1_000);
      await suspend(organisation, agent);
      await isCut(organisation, reading, 'agent_suspended');
      await expect.poll(() => answering.get('/items/stream-elsewhere')).toBe(0);
    },
  );
});
