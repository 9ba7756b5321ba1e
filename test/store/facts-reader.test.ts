import { randomInt } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { BREAKER_LIMITS } from '../../broker/policy/breaker.ts';
import { ALL_PLATFORMS } from '../../broker/policy/facts.ts';
import { moveAgent } from '../../broker/store/agents.ts';
import { strike } from '../../broker/store/breakers.ts';
import { setCredentialStatus } from '../../broker/store/connections.ts';
import { prepareFacts } from '../../broker/store/facts.ts';
import { type FactsReader, factsReaders } from '../../broker/store/facts-reader.ts';
import { updateOrganisation } from '../../broker/store/organisations.ts';
import type { TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared, startWorld } from '../world/world.ts';

const HERE = '127.0.0.1';

describe.each(STORES)(`reads of facts on %s${postgresNote}`, (store) => {
  let read: FactsReader;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    read = factsReaders(world.running.broker.store).own;
  });

  test('that are concurrent each get the rows of their own agent', async () => {
    const agents = await Promise.all(
      Array.from({ length: 70 }, (_, at) => organisation.agent({ name: `agent-${at}` })),
    );
    const nobody = 'agt_00000000000000000000';
    const asked = [...agents.map(({ agentId }) => agentId), nobody, agents[0]!.agentId];
    const answers = await Promise.all(asked.map((agentId) => read(agentId, 'demo', HERE)));
    expect(answers.map((rows) => rows[0]?.agent_id)).toEqual(asked.map((id) => (id === nobody ? undefined : id)));
    expect(answers.every((rows) => rows.length <= 1)).toBe(true);
  });

  test('return the same rows alone, in a batch, and for all platforms', async () => {
    const agent = await organisation.agent();
    const [alone] = await read(agent.agentId, 'demo', HERE);
    const together = factsReaders(world.running.broker.store).own;
    const grouped = await Promise.all([1, 2, 3].map(() => together(agent.agentId, 'demo', HERE)));
    const [onAll] = await read(agent.agentId, ALL_PLATFORMS, HERE);
    expect(grouped).toEqual([[alone], [alone], [alone]]);
    expect(onAll).toEqual(alone);
    expect(alone).toMatchObject({ agent_id: agent.agentId, platform_id: 'demo', status: 'active', parent_id: null });
    expect(alone!.created_at).toBeTypeOf('number');
    expect(alone!.connection_credential).toBeInstanceOf(Uint8Array);
  });

  test('keep credentials in memory of their own, not the pool of Buffers that the database client decoded them into', async () => {
    const agent = await organisation.agent();
    const [{ connection_credential: credential } = {}] = await read(agent.agentId, 'demo', HERE);
    expect(credential!.buffer.byteLength).toBe(credential!.byteLength);
  });

  test('return the same immutable objects until a value changes', async () => {
    const agent = await organisation.agent();
    const first = await read(agent.agentId, 'demo', HERE);
    expect(await read(agent.agentId, 'demo', HERE)).toBe(first);
    expect(() => Object.assign(first[0]!, { status: 'revoked' })).toThrow(TypeError);
    expect(() => (first as unknown[]).push(first[0])).toThrow(TypeError);
  });

  const changes: [string, (agent: TestAgent) => Promise<unknown>][] = [
    [
      'its status',
      (agent) =>
        moveAgent(
          world.db,
          { organisationId: organisation.id, id: agent.id },
          { from: ['active'], to: 'suspended', cause: 'owner_manual', detail: null },
          Date.now(),
        ),
    ],
    ['the guardrails', () => organisation.guardrails([{ name: 'none', effect: 'deny', endpoints: ['/none'] }])],
    ['the platform', () => organisation.platform({ secret: null, manifest: { name: `Demo ${randomInt(1_000_000)}` } })],
    [
      'the organisation',
      () => updateOrganisation(world.db, organisation.id, { approval_ttl_ms: randomInt(1_000, 1_000_000) }),
    ],
    [
      'a breaker',
      (agent) =>
        strike(
          world.db,
          { organisation_id: organisation.id, agent_id: agent.id, cause: 'breaker_api_error', key: '' },
          { ...BREAKER_LIMITS.breaker_api_error, strikes: 1 },
          Date.now(),
        ),
    ],
    [
      'the state of its connection',
      async (agent) => {
        const [row] = await read(agent.agentId, 'demo', HERE);
        const place = { organisationId: organisation.id, id: row!.connection_id! };
        const other = row!.connection_status === 'active' ? 'reauth_needed' : 'active';
        await setCredentialStatus(world.db, { table: 'connections', ...place }, other);
      },
    ],
  ];
  test.each(changes)('return new rows immediately after a change of %s', async (_what, change) => {
    const agent = await organisation.agent();
    const before = await read(agent.agentId, 'demo', HERE);
    await change(agent);
    const after = await read(agent.agentId, 'demo', HERE);
    expect(after).not.toBe(before);
    expect(after).not.toEqual(before);
  });

  test('of an unknown platform are not cached, and of a platform without a grant are', async () => {
    const agent = await organisation.agent({ grants: {} });
    const again = async (platform: string) => [
      await read(agent.agentId, platform, HERE),
      await read(agent.agentId, platform, HERE),
    ];
    for (const [platform, kept] of [
      ['made-up', false],
      ['demo', true],
      ['', true],
    ] as const) {
      const [first, second] = await again(platform);
      expect(first).toEqual(second);
      expect([platform, first === second]).toEqual([platform, kept]);
    }
  });

  test('share one cache: without a parent, rows of one scope’s statement serve the other', async () => {
    const { store } = world.running.broker;
    const reads: string[] = [];
    const readers = factsReaders({
      ...store,
      read: (statement, slots) => {
        reads.push(Object.keys(slots).join());
        return store.read(statement, slots);
      },
    });
    const agent = await organisation.agent();
    const orders: ('own' | 'family')[][] = [
      ['own', 'family'],
      ['family', 'own'],
    ];
    for (const [first, second] of orders)
      for (const platform of ['demo', ALL_PLATFORMS]) {
        await world.db
          .updateTable('agents')
          .set({ name: `${first} ${platform}` })
          .where('id', '=', agent.id)
          .execute();
        const rows = await readers[first!](agent.agentId, platform, HERE);
        reads.length = 0;
        expect(await readers[second!](agent.agentId, platform, HERE)).toBe(rows);
        expect(reads).toEqual(['organisation']);
      }
  });

  test('of a child are cached by scope: rows without the parent are not used for the family scope', async () => {
    const readers = factsReaders(world.running.broker.store);
    const parent = await organisation.agent();
    const child = await childOf(world, organisation, parent);
    for (const whose of ['own', 'family', 'own', 'family'] as const) {
      const [row] = await readers[whose](child.agentId, 'demo', HERE);
      expect([row!.parent_id, row!.parent_agent_id]).toEqual([
        parent.id,
        whose === 'family' ? parent.agentId : undefined,
      ]);
    }
  });

  test('of an unknown agent return no rows', async () => {
    const nobody = 'agt_00000000000000000001';
    expect(await read(nobody, 'demo', HERE)).toEqual([]);
    expect(await read(nobody, ALL_PLATFORMS, HERE)).toEqual([]);
  });
});

test('the subquery for a connection names no column of the outer derived table, which SQLite 3.49 (Node 24.0) does not resolve', async () => {
  const { store } = (await startWorld('sqlite')).running.broker;
  const { sql } = prepareFacts(store.db, 'of_connection', { many: false, scope: 'own' });
  const [subquery] = /\(select x\.id.*?limit 1\)/s.exec(sql) ?? [];
  expect(subquery).toContain('x.label = ?');
  expect(subquery).not.toContain('q.');
});
