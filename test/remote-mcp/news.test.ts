/** Notifications of changed permissions to remote MCP clients: sent where the protocol has a stream for them, and advertised nowhere else. */
import { Client } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ownersChangeIn } from '../../broker/audit/changes.ts';
import { expectStatus } from '../world/agent.ts';
import { browserOf, ClientMemory, connectClient, connectFirstClient } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, givenWorld, shared } from '../world/world.ts';

const TIMEOUT = { timeout: 10_000, interval: 5 };

describe.each(ONE_STORE)(`notifications of changed permissions to a remote client, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));

  const decision = (name: string) => ({ name, grants: [{ platformId: 'demo', scopes: ['demo:read'] }] });
  const agentNamed = async (name: string): Promise<{ id: string }> =>
    (await organisation.ask('GET', '/owner/agents')).body.agents.find((one: { name: string }) => one.name === name);
  const listening = () => world.running.services.changes.waiting(ownersChangeIn(organisation.id).id);

  /** Connects a client whose SDK subscribes to changes. `told`: the descriptions of the first tool, read after each notification. */
  async function listener(name: string) {
    const told: string[] = [];
    const client = new Client(
      { name: 'test', version: '1' },
      {
        versionNegotiation: { mode: { pin: '2026-07-28' } },
        listChanged: {
          tools: { debounceMs: 0, onChanged: (_error, tools) => void told.push(tools?.[0]?.description ?? '') },
        },
      },
    );
    const browser = browserOf(world, organisation.owner);
    const { memory } = await connectClient(world, browser, { client, decision: decision(name) });
    onTestFinished(() => client.close());
    return { client, memory, told };
  }

  test('a client of 2026-07-28 with a subscription is notified, and gets the new list', async () => {
    const name = `listens-${store}`;
    const { client, told } = await listener(name);
    expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: true });
    expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true });
    expect((await client.listTools()).tools[0]?.description).toMatch(/- demo: demo:read$/m);
    const { id } = await agentNamed(name);
    const terms = { scopes: ['demo:read', 'demo:delete'] };
    expect((await organisation.ask('POST', `/owner/agents/${id}/grants/demo`, terms)).status).toBe(200);
    await vi.waitUntil(() => told.length > 0, TIMEOUT);
    expect(told).toEqual([expect.stringMatching(/- demo: demo:delete, demo:read$/m)]);

    // A change for another agent causes no notification.
    const other = `other-${store}`;
    const { client: neighbour } = await listener(other);
    const grant = `/owner/agents/${(await agentNamed(other)).id}/grants/demo`;
    expect((await organisation.ask('POST', grant, terms)).status).toBe(200);
    await organisation.ask('POST', `/owner/agents/${id}/grants/demo`, { scopes: ['demo:read'] });
    await vi.waitUntil(() => told.length > 1, TIMEOUT);
    expect(told.slice(1)).toEqual([expect.stringMatching(/- demo: demo:read$/m)]);
    await neighbour.close();
  });

  test.runIf(store === 'postgres')(
    'a list waits for the permissions, since no notification would follow it',
    async () => {
      const manifest = {
        kind: 'mcp',
        base_url: `${world.upstream.url}/mcp`,
        scopes: { 'tools:read': ['tool search_*'] },
      };
      await organisation.platform({ id: 'tools', manifest });
      const client = new OAuthClient(world);
      const grants = [{ platformId: 'tools', scopes: ['tools:read'] }];
      const { access_token } = await client.tokens(browserOf(world, organisation.owner), {}, { name: 'waits', grants });
      const blocker = new pg.Client({ connectionString: world.environment.DATABASE_URL! });
      await blocker.connect();
      onTestFinished(() => blocker.end());
      // The tools of servers are read for the permissions, and not for authentication.
      await blocker.query('begin; lock table tools in access exclusive mode');
      const listed = callMcp(world.running.baseUrl, access_token);
      const waiting = sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and clock_timestamp() - query_start > interval '1 second'`;
      await expect.poll(async () => (await waiting.execute(world.db)).rows).toHaveLength(1);
      await blocker.query('commit');
      const { text } = await expectStatus(200, listed);
      expect(text).toContain('- tools: tools:read');
    },
  );

  test('a subscription ends when the client disconnects, and when its access is revoked', async () => {
    await vi.waitUntil(() => listening() === 0, TIMEOUT);
    const one = await listener(`goes-${store}`);
    expect(listening()).toBe(1);
    await one.client.close();
    await vi.waitUntil(() => listening() === 0, TIMEOUT);

    const name = `ended-${store}`;
    const two = await listener(name);
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    const mine = authorisations.find((entry: { agent: { name: string } }) => entry.agent.name === name);
    expect((await organisation.ask('DELETE', `/owner/mcp-authorisations/${mine.id}`)).status).toBe(200);
    expect(await two.client.autoOpenedSubscription!.closed).toBe('graceful');
    await vi.waitUntil(() => listening() === 0, TIMEOUT);
    expect(two.told).toEqual([]);
  });

  test('handshake clients are offered neither list changes, for which they have no stream, nor tasks', async () => {
    const capabilitiesOf = async (connect: () => Promise<Client | FirstClient>) =>
      (await connect()).getServerCapabilities();
    const browser = () => browserOf(world, organisation.owner);
    const second = async () => (await connectClient(world, browser(), { decision: decision(`hands-${store}`) })).client;
    const first = async () => {
      const client = new FirstClient({ name: 'first', version: '1' });
      const memory = new ClientMemory();
      await connectFirstClient(world, browser(), { client, memory, decision: decision(`first-${store}`) });
      return client;
    };
    expect([await capabilitiesOf(second), await capabilitiesOf(first)]).toEqual([{ tools: {} }, { tools: {} }]);
  });
});
