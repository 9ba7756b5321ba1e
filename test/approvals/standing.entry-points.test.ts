/**
 * A standing approval at each entry point: decremented before the call is sent, exact, named by the receipt, revoked immediately, and not valid for
 * children.
 */
import { Client } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { actThrough } from '../proxy/entry-points.ts';
import { SCOPES } from '../upstream-mcp/connected.ts';
import type { TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { verifyReceipt } from '../world/evidence.ts';
import { browserOf, connectClient } from '../world/mcp/person.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_SCOPES, shared, WRITE } from '../world/world.ts';

const HOLD = [{ effect: 'require_approval', methods: ['POST'], name: 'writes-wait' }, { effect: 'allow' }];
const ANN = slack('U-ann');

describe.each(ONE_STORE)(`standing approvals at each entry point on %s${postgresNote}`, (store) => {
  const platform = shared(() => startUpstream());
  const mcp = shared(() => startMcpServer());
  const people = givenPeople(store, { reaches: () => [platform.address, mcp.address] });
  const { world, organisation, server } = people;

  /** `call`: makes a call; `seen`: requests that the platform got; `children`: grants of the agent's child. */
  type EntryPoint = {
    agent?: TestAgent;
    call: (by?: TestAgent) => Promise<unknown>;
    seen: () => number;
    free?: object[];
    children?: { platform: string; scopes: string[] };
  };
  /** Remaining uses of the standing approval when the platform gets the request. */
  let left: (() => Promise<number>) | undefined;
  const leftThen: number[] = [];
  const look = async () => {
    if (left) leftThen.push(await left());
  };
  let count = 0;
  const demo = async () => {
    await organisation.platform({
      manifest: { base_url: platform.url, free: { 'POST /items': ['/text'] } },
    });
    platform.seen.length = 0;
    platform.answer = async (_request, response) => {
      await look();
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    };
    return await organisation.policy(HOLD);
  };
  const write = () => ({ ...WRITE, data: { to: 'ann', text: `call ${++count}` } });
  const ofDemo = { seen: () => platform.seen.length, free: [{ member: '/text' }] };
  const children = { platform: 'demo', scopes: ['demo:write'] };

  const ENTRY_POINTS: Record<string, () => Promise<EntryPoint>> = {
    'POST /v1/actions': async () => {
      const agent = await organisation.agent({ policy: await demo() });
      return { ...ofDemo, agent, children, call: (by = agent) => by.act(write()) };
    },
    '/proxy': async () => {
      const agent = await organisation.agent({ policy: await demo() });
      return { ...ofDemo, agent, children, call: (by = agent) => actThrough('/proxy', by, write()) };
    },
    '/mcp': async () => {
      const policy = await demo();
      const versionNegotiation = { mode: { pin: '2026-07-28' } } as const;
      const client = new Client({ name: 'test', version: '1' }, { capabilities: {}, versionNegotiation });
      onTestFinished(() => client.close());
      const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
      await connectClient(world, browserOf(world, organisation.owner), {
        client,
        decision: { name: 'remote', policy, grants },
      });
      return {
        ...ofDemo,
        call: () => {
          const { method: _method, ...args } = write();
          return client.callTool({ name: 'write_platform', arguments: args });
        },
      };
    },
    'a tool of an MCP server': async () => {
      await organisation.platform({ id: 'tools', manifest: { kind: 'mcp', base_url: mcp.url, scopes: SCOPES } });
      const policy = await organisation.policy(HOLD);
      const agent = await organisation.agent({ policy, grants: { tools: { scopeList: Object.keys(SCOPES) } } });
      const tool = mcp.tools.find(({ name }) => name.startsWith('write_'))!;
      let calls = 0;
      tool.run = () => {
        calls++;
        void look();
        return {};
      };
      const asked = {
        platform: 'tools',
        endpoint: `/tools/${tool.name}`,
        method: 'POST',
        scope: 'tools:write',
        data: {},
      };
      return {
        agent,
        children: { platform: 'tools', scopes: ['tools:write'] },
        seen: () => calls,
        call: (by = agent) => by.act(asked),
      };
    },
    'for a person': async () => {
      await people.connected(ANN, 'ann');
      const policy = await organisation.policy(HOLD);
      const agent = await organisation.agent({ policy, grants: { docs: { scopeList: ['docs:write'] } } });
      let calls = 0;
      server.before = async (path) => {
        if (!path.startsWith('/api/items')) return;
        calls++;
        await look();
      };
      const asked = { platform: 'docs', endpoint: '/items', method: 'POST', scope: 'docs:write', data: {} };
      return {
        agent,
        children: { platform: 'docs', scopes: ['docs:write'] },
        seen: () => calls,
        call: (by = agent) => by.act({ ...asked, caller: ANN }),
      };
    },
  };

  const pending = async (many: number): Promise<string[]> => {
    const list = async () => (await organisation.pending()).map(({ approval_id }) => approval_id);
    await vi.waitUntil(async () => (await list()).length >= many, { timeout: 15_000, interval: 20 });
    return await list();
  };
  const deny = async (ids: readonly string[]) => {
    for (const id of ids) expect((await organisation.deny(id)).status).toBe(200);
  };
  const listed = async (id: string) =>
    (await organisation.ask('GET', '/owner/standing-approvals?status=all')).body.standing_approvals.find(
      (one: { id: string }) => one.id === id,
    );
  const make = async (held: string, uses: number, free: object[] = []): Promise<string> => {
    const standing = { count: uses, for_seconds: 3600, free };
    const { status, text, body } = await organisation.approve(held, { standing });
    expect(status, text).toBe(200);
    leftThen.length = 0;
    left = async () => (await listed(body.standing_approval)).left;
    return body.standing_approval;
  };
  /** The standing approvals named by receipts of calls. The receipt of the decision names its terms, too. */
  const named = async () => {
    const rows = await world.db
      .selectFrom('audit_rows')
      .select(['id'])
      .where('organisation_id', '=', organisation.id)
      .where('flags', 'like', '%"standing_approval"%')
      .where('state', '=', 'final')
      .orderBy('id')
      .execute();
    const receipts = await Promise.all(
      rows.map(async ({ id }) => {
        const { body } = await organisation.ask('GET', `/v1/audit/${id}/receipt`);
        return (await verifyReceipt(world, body.receipt)).payload.standing_approval;
      }),
    );
    return receipts.filter((one) => one.terms_hash === undefined);
  };

  test.each(Object.keys(ENTRY_POINTS))('%s', { timeout: 180_000 }, async (name) => {
    left = undefined;
    const { agent, call, seen, free, children: granted } = await ENTRY_POINTS[name]!();
    const first = call();
    const [held] = await pending(1);
    const id = await make(held!, 2, free);
    await first;
    await vi.waitUntil(() => seen() === 1, { timeout: 15_000 });

    await call();
    expect(seen()).toBe(2);
    await vi.waitUntil(() => leftThen.length > 0);
    expect(leftThen.at(-1), 'as the platform was asked').toBe(1);
    expect(await named()).toEqual([{ id, left: 1 }]);

    const atOnce = [call(), call(), call(), call()];
    const waiting = await pending(3);
    expect(waiting).toHaveLength(3);
    await vi.waitUntil(() => seen() === 3, { timeout: 15_000 });
    await deny(waiting);
    await Promise.all(atOnce);
    expect(seen()).toBe(3);
    expect(await named()).toEqual([1, 0].map((rest) => ({ id, left: rest })));
    expect(await listed(id)).toMatchObject({ left: 0, status: 'ended', ended_because: 'used' });

    const again = call();
    const [second] = await pending(1);
    const other = await make(second!, 5, free);
    await again;
    await vi.waitUntil(() => seen() === 4, { timeout: 15_000 });
    if (agent && granted) {
      const child = await childOf(world, organisation, agent, { grants: [granted] });
      await call(child);
      await deny(await pending(1));
      expect([seen(), await left!()]).toEqual([4, 5]);
    }
    await call();
    expect([seen(), await left!()]).toEqual([5, 4]);
    expect((await organisation.ask('DELETE', `/owner/standing-approvals/${other}`)).status).toBe(200);
    const refused = call();
    await deny(await pending(1));
    await refused;
    expect(seen()).toBe(5);
  });
});
