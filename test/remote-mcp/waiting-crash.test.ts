/** A remote MCP client whose broker is killed while it waits for a person: the next process answers as if nothing had been. */
import { Client } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { browserOf, ClientMemory, connectClient, connectFirstClient } from '../world/mcp-person.ts';
import { taskSession } from '../world/mcp-tasks.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, startWorld } from '../world/world.ts';

const WRITE = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { title: 'once' } };

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;
type Call = (name: string, args: object, options?: { onprogress?: () => void }) => Promise<Json>;

describe.each(ONE_STORE)(`kill -9 while a remote client waits, on %s${postgresNote}`, (store) => {
  /** A world whose broker is a process that a test may kill, and a client that an owner has authorised. */
  async function scene(client: Client | FirstClient) {
    const world = await startWorld(store, { LOG_LEVEL: 'warn' });
    const organisation = await world.organisation();
    await organisation.platform();
    await organisation.policy(DEMO_RULES, 'default');
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const { port } = new URL(world.running.baseUrl);
    await world.running.stop();
    const environment = { ...world.environment, PORT: port, TEST_BEAT_MS: '250' };
    const start = async () => {
      const child = spawnBroker(environment);
      onTestFinished(() => child.signal('SIGKILL'));
      expect(await child.serve(), child.output().stderr).toBe(world.running.baseUrl);
      return child;
    };
    const child = await start();
    const ask = (method: string, path: string, body?: object) =>
      send(world.running.baseUrl + path, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
    const memory = new ClientMemory();
    const decision = { name: 'remote', grants: [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }] };
    const connect = async (one: Client | FirstClient) => {
      const browser = browserOf(world, organisation.owner);
      if (one instanceof FirstClient) await connectFirstClient(world, browser, { client: one, memory, decision });
      else await connectClient(world, browser, { client: one, memory, decision });
      onTestFinished(() => one.close());
    };
    await connect(client);
    return {
      world,
      memory,
      connect,
      pending: async (): Promise<string[]> =>
        (await ask('GET', '/owner/approvals?status=pending')).body.approvals.map((one: Json) => one.approval_id),
      approve: async (id: string) => expect((await ask('POST', `/owner/approvals/${id}/approve`, {})).status).toBe(200),
      killAndStart: async () => {
        child.signal('SIGKILL');
        await child.ended;
        return await start();
      },
    };
  }

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

  test.each([
    ['of the first generation', () => new FirstClient({ name: 'first', version: '1' })],
    ['of the second, shaking hands', () => second()],
    ['of the second, stateless', () => second('2026-07-28')],
  ])(
    'a client %s repeats the identical call, as it is or connected again: it is the same approval, made once',
    async (_what, make) => {
      const client = make();
      const { world, connect, pending, approve, killAndStart } = await scene(client);
      const call = callOf(client);
      const waits = Promise.withResolvers<void>();
      const cut = call('write_platform', { ...WRITE, reason: 'First words.' }, { onprogress: waits.resolve }).then(
        () => 'answered',
        () => 'cut',
      );
      await waits.promise;
      const [id] = await pending();
      await killAndStart();

      // The client goes on as if the connection alone had been lost.
      const again = Promise.withResolvers<void>();
      const answering = call('write_platform', { ...WRITE, reason: 'Other words.' }, { onprogress: again.resolve });
      await again.promise;
      // Another process of it does the same.
      const other = make();
      await connect(other);
      const also = Promise.withResolvers<void>();
      const answeringToo = callOf(other)('write_platform', WRITE, { onprogress: also.resolve });
      await also.promise;
      expect(await pending()).toEqual([id]);
      expect(world.upstream.seen).toHaveLength(0);
      await approve(id!);
      for (const { structuredContent } of await Promise.all([answering, answeringToo]))
        expect(structuredContent).toMatchObject({ status: 'answered', approval_id: id });
      const checked = await call('check_approval', { approval_id: id });
      expect(checked.structuredContent).toMatchObject({ status: 'answered', approval_id: id });
      expect(world.upstream.seen).toHaveLength(1);
      await client.close();
      expect(await cut).toBe('cut');
    },
    60_000,
  );

  test('a client with a task goes on asking for it, and has the answer in the end', async () => {
    const client = second('2026-07-28');
    const { world, memory, pending, approve, killAndStart } = await scene(client);
    const session = await taskSession(world, client, memory);
    const execution = await session.callTool('write_platform', WRITE);
    if (execution.kind !== 'task') throw new Error('no task');
    const id = String(execution.handle.taskId);
    expect(await pending()).toEqual([id]);
    const settled = execution.settle();
    await killAndStart();
    expect((await session.task(execution.handle.taskId).snapshot()).status).toBe('working');
    await approve(id);
    const { outcome }: Json = await settled;
    expect(outcome).toMatchObject({ status: 'completed', result: { structuredContent: { status: 'answered' } } });
    expect(world.upstream.seen).toHaveLength(1);
  }, 180_000);
});
