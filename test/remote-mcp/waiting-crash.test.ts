/** A remote MCP client whose broker is killed while it waits for a person: the next process continues without a difference for the client. */
import { Client } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { jsonRequest, send } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { browserOf, ClientMemory, connectClient, connectFirstClient } from '../world/mcp/person.ts';
import { taskSession } from '../world/mcp/tasks.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, type Organisation, startWorld, type World } from '../world/world.ts';

const WRITE = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { title: 'once' } };

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;
type Call = (name: string, args: object, options?: { onprogress?: () => void }) => Promise<Json>;

describe.each(ONE_STORE)(`kill -9 while a remote client waits, on %s${postgresNote}`, (store) => {
  // One organisation and one broker, which each test kills and restarts; the calls of a test are decided before it ends.
  let world: World;
  let organisation: Organisation;
  let token: string;
  let child: BrokerProcess;
  const start = async () => {
    const { port } = new URL(world.running.baseUrl);
    child = spawnBroker({ ...world.environment, PORT: port, TEST_BEAT_MS: '250' });
    expect(await child.serve(), child.output().stderr).toBe(world.running.baseUrl);
  };
  beforeAll(async () => {
    world = await startWorld(store, { LOG_LEVEL: 'warn' });
    organisation = await world.demoOrganisation();
    await organisation.policy(DEMO_RULES, 'default');
    token = mintOwnerSession(world.running.broker, organisation.owner).token;
    await world.running.stop();
    await start();
    return () => child.signal('SIGKILL');
  });
  beforeEach(() => {
    world.upstream.seen.length = 0;
  });

  const ask = (method: string, path: string, body?: object) =>
    send(world.running.baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${token}` }));
  const pending = async (): Promise<string[]> =>
    (await ask('GET', '/owner/approvals?status=pending')).body.approvals.map((one: Json) => one.approval_id);
  const approve = async (id: string) =>
    expect((await ask('POST', `/owner/approvals/${id}/approve`, {})).status).toBe(200);
  async function killAndStart() {
    child.signal('SIGKILL');
    await child.ended;
    await start();
  }
  let names = 0;
  /** Connects a client with the authorisation of an owner. */
  async function connect(client: Client | FirstClient, { memory, name }: Connection) {
    const decision = { name, grants: [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }] };
    const browser = browserOf(world, organisation.owner);
    if (client instanceof FirstClient) await connectFirstClient(world, browser, { client, memory, decision });
    else await connectClient(world, browser, { client, memory, decision });
    onTestFinished(() => client.close());
  }
  type Connection = { memory: ClientMemory; name: string };
  const newConnection = (): Connection => ({ memory: new ClientMemory(), name: `remote ${++names}` });

  const second = (pin?: string) =>
    new Client({ name: 'second', version: '1' }, pin === undefined ? {} : { versionNegotiation: { mode: { pin } } });
  const callOf =
    (client: Client | FirstClient): Call =>
    (name, given, options = {}) => {
      const params = { name, arguments: { ...given } };
      return client instanceof FirstClient
        ? client.callTool(params, undefined, options)
        : client.callTool(params, options);
    };

  const CLIENTS: [what: string, make: () => Client | FirstClient][] = [
    ['of the first generation', () => new FirstClient({ name: 'first', version: '1' })],
    ['of the second, shaking hands', () => second()],
    ['of the second, stateless', () => second('2026-07-28')],
  ];
  test(`a client ${CLIENTS.map(([what]) => what).join('; ')}: repeating the identical call, on the same or a new connection, finds the same approval, and the call is made once`, async () => {
    const begun = [];
    // The one broker is killed while all of these clients wait.
    for (const [what, make] of CLIENTS) {
      const client = make();
      const connection = newConnection();
      await connect(client, connection);
      const before = await pending();
      const write = { ...WRITE, data: { title: `once ${before.length}` } };
      const waits = Promise.withResolvers<void>();
      const given = { ...write, reason: 'First words.' };
      const cut = callOf(client)('write_platform', given, { onprogress: waits.resolve }).then(
        () => 'answered',
        () => 'cut',
      );
      await waits.promise;
      const [id] = (await pending()).filter((one) => !before.includes(one));
      begun.push({ what, make, client, connection, write, cut, id });
    }
    const ids = await pending();
    expect(ids).toEqual(expect.arrayContaining(begun.map(({ id }) => id)));
    await killAndStart();

    for (const { what, make, client, connection, write, cut, id } of begun) {
      const call = callOf(client);
      // The client repeats its call as if only the connection had been lost.
      const again = Promise.withResolvers<void>();
      const answering = call('write_platform', { ...write, reason: 'Other words.' }, { onprogress: again.resolve });
      await again.promise;
      // Another process of the client does the same.
      const other = make();
      await connect(other, connection);
      const also = Promise.withResolvers<void>();
      const answeringToo = callOf(other)('write_platform', write, { onprogress: also.resolve });
      await also.promise;
      expect(await pending(), what).toContain(id);
      expect(ids, what).toEqual(expect.arrayContaining(await pending()));
      expect(world.upstream.seen.filter(({ body }) => body.includes(write.data.title))).toHaveLength(0);
      await approve(id!);
      for (const { structuredContent } of await Promise.all([answering, answeringToo]))
        expect(structuredContent, what).toMatchObject({ status: 'answered', approval_id: id });
      const checked = await call('check_approval', { approval_id: id });
      expect(checked.structuredContent, what).toMatchObject({ status: 'answered', approval_id: id });
      expect(world.upstream.seen.filter(({ body }) => body.includes(write.data.title))).toHaveLength(1);
      await client.close();
      expect(await cut, what).toBe('cut');
    }
    expect(world.upstream.seen).toHaveLength(begun.length);
  }, 180_000);

  test('a client with a task continues to poll it, and gets the result', async () => {
    const client = second('2026-07-28');
    const connection = newConnection();
    await connect(client, connection);
    const session = await taskSession(world, client, connection.memory);
    const execution = await session.callTool('write_platform', WRITE);
    if (execution.kind !== 'task') throw new Error('no task');
    const id = String(execution.handle.taskId);
    expect(await pending()).toContain(id);
    const settled = execution.settle();
    await killAndStart();
    expect((await session.task(execution.handle.taskId).snapshot()).status).toBe('working');
    await approve(id);
    const { outcome }: Json = await settled;
    expect(outcome).toMatchObject({ status: 'completed', result: { structuredContent: { status: 'answered' } } });
    expect(world.upstream.seen).toHaveLength(1);
  }, 180_000);
});
