/** A complete wait without a decision, in real time: shorter than the client's own timeout, and with progress notifications. */
import { Client } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { expect, test } from 'vitest';
import { deskOf, type HeldArguments } from '../world/mcp/held.ts';
import { browserOf, ClientMemory, connectClient, connectFirstClient } from '../world/mcp/person.ts';
import { DEMO_RULES, DEMO_SCOPES, startWorld } from '../world/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;
type Call = (params: Json, options: Json) => Promise<Json>;

test('lasts 50 seconds with the link every 10; then the answer has the approval’s id, and check_approval waits again', async () => {
  const world = await startWorld();
  const organisation = await world.organisation();
  await organisation.platform();
  await organisation.policy(DEMO_RULES, 'default');
  const desk = deskOf(world, organisation);
  const browser = browserOf(world, organisation.owner);
  const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];

  const first = new FirstClient({ name: 'first', version: '1' });
  await connectFirstClient(world, browser, {
    client: first,
    memory: new ClientMemory(),
    decision: { name: 'first', grants },
  });
  const handshake = new Client({ name: 'handshake', version: '1' });
  await connectClient(world, browser, { client: handshake, decision: { name: 'handshake', grants } });
  const versionNegotiation = { mode: { pin: '2026-07-28' } };
  const stateless = new Client({ name: 'stateless', version: '1' }, { versionNegotiation });
  await connectClient(world, browser, { client: stateless, decision: { name: 'stateless', grants } });
  const clients: [string, Call, HeldArguments][] = [
    ['first', (params, options) => first.callTool(params, undefined, options), desk.held()],
    ['handshake', (params, options) => handshake.callTool(params, options), desk.held()],
    ['stateless', (params, options) => stateless.callTool(params, options), desk.held()],
  ];

  // Concurrently, a platform that takes long to answer.
  const works = Promise.withResolvers<void>();
  world.upstream.answer = async ({ url }, response) => {
    if (url?.endsWith('/items/slow')) await works.promise;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"slow":true}');
  };
  const slow = (async () => {
    const told: unknown[] = [];
    const onprogress = ({ progress, message }: Json) => {
      told.push([Math.round(progress), message]);
      works.resolve();
    };
    const read = { platform: 'demo', endpoint: '/items/slow', scope: 'demo:read' };
    const { structuredContent } = await stateless.callTool({ name: 'read_platform', arguments: read }, { onprogress });
    expect(structuredContent).toMatchObject({ status: 'answered', data: { slow: true } });
    expect(told).toEqual([[10, 'The platform has not answered yet.']]);
  })();

  await Promise.all([
    slow,
    ...clients.map(async ([name, call, args]) => {
      const told: { progress: number; message: string }[] = [];
      const began = performance.now();
      // No timeout is configured: the SDKs' defaults have to suffice.
      const onprogress = (one: Json) => told.push(one);
      const { structuredContent } = await call({ name: 'write_platform', arguments: { ...args } }, { onprogress });
      const seconds = (performance.now() - began) / 1000;
      const [id] = await desk.pending(name);
      expect(structuredContent, name).toMatchObject({ status: 'pending_approval', approval_id: id });
      expect(structuredContent.next).toMatch(/Do not submit the call again. Call check_approval/);
      expect(seconds).toBeGreaterThan(48);
      expect(seconds).toBeLessThan(58);
      expect(told.map(({ progress }) => Math.round(progress / 10) * 10).slice(0, 5)).toEqual([0, 10, 20, 30, 40]);
      for (const { message } of told) expect(message).toContain(desk.urlOf(id!));

      const waits = Promise.withResolvers<void>();
      const checking = call({ name: 'check_approval', arguments: { approval_id: id } }, { onprogress: waits.resolve });
      await waits.promise;
      await desk.decide(id!, 'approve');
      expect((await checking).structuredContent).toMatchObject({ status: 'answered', approval_id: id });
      expect(desk.sentFor(args)).toBe(1);
    }),
  ]);
  for (const client of [first, handshake, stateless]) await client.close();
}, 270_000);
