/**
 * Governance files and OAuth connections: refreshed tokens do not invalidate a plan, and an apply revokes the tokens that are current when it commits.
 */
import { sql } from 'kysely';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Db } from '../../broker/store/store.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { connectAtOnce, outlive } from '../world/browser/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startReplica } from '../world/replica.ts';
import { thorough } from '../world/runner/thorough.ts';
import { startLyingServer } from '../world/servers/lying-authorization-server.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, type Organisation, shared } from '../world/world.ts';

const READ = { platform: 'docs', endpoint: '/items', method: 'GET', scope: 'docs:read' };
const SECRET = 'CANARY-governed-0123456789';
const JSON_TYPE = { 'content-type': 'application/json' };
const FREEZE = { guardrails: [{ name: 'freeze', effect: 'deny', methods: ['DELETE'] }] };

/** In CI the store whose transactions run beside each other. */
const WHERE = thorough ? STORES : ONE_STORE;

describe.each(WHERE)(`governance files and OAuth connections on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  let agent: TestAgent;
  let connection: string;
  let revoked: string[];
  const server = shared(() => startLyingServer());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  beforeEach(async () => {
    server.beHonest();
    revoked = [];
    server.answers.set('/revoke', (_request, response, body) => {
      revoked.push(new URLSearchParams(body).get('token')!);
      response.writeHead(200).end();
    });
    organisation = await world.organisation();
    await expectStatus(200, apply(present()));
    connection = (await connectionOf('main')).id;
    agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    await connectAtOnce(world, organisation.owner, connection);
  });

  const platform = (path: string, scopes: object) => ({
    kind: 'rest',
    base_url: `${server.issuer}${path}`,
    auth: server.auth(),
    scopes,
  });
  const present = () => ({
    platforms: {
      docs: platform('/api', { 'docs:read': ['GET /items'] }),
      other: platform('/other', { 'other:read': ['GET /items'] }),
      plain: { ...platform('/plain', { 'plain:read': ['GET /items'] }), auth: { type: 'bearer' } },
    },
    connections: { main: { platform: 'docs' }, plain: { platform: 'plain', secret: { env: 'SECRET' } } },
  });
  const file = (document: object, more: object = {}) => ({
    text: JSON.stringify(document),
    values: { 'env:SECRET': SECRET, 'env:TOKEN': `${SECRET}-token` },
    ...more,
  });
  const plan = async (document: object) => {
    const planned = await expectStatus(200, organisation.ask('POST', '/owner/governance/plan', file(document)));
    return planned.body;
  };
  const apply = (document: object, governance_version?: string) =>
    organisation.ask('POST', '/owner/governance/apply', file(document, { governance_version }));
  const connectionOf = async (label: string) =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { label: string }) => one.label === label,
    );
  const owner = (path: string, body: unknown = {}) => expectStatus(200, organisation.ask('POST', path, body));

  /** Makes the broker refresh the connection's tokens, by a call of an agent. */
  async function refresh(): Promise<void> {
    const before = server.given.refresh.length;
    await outlive(world, connection);
    const called = await agent.act(READ);
    expect([called.status, server.given.refresh.length], called.text).toEqual([200, before + 1]);
  }
  const newest = () => [server.given.refresh.at(-1), server.given.access.at(-1)];

  /** Runs the change after an apply has planned, before its transaction. Returns a function that counts transactions since. */
  function beforeTransaction(change: () => Promise<void>): () => number {
    const { recorder } = world.running.services;
    const { record } = recorder;
    let transactions = 0;
    const spy = vi.spyOn(recorder, 'record').mockImplementation(async (entry: Parameters<typeof record>[0]) => {
      if (entry.row.reason === 'governance_applied' && ++transactions === 1) await change();
      return await record(entry as never);
    });
    onTestFinished(() => spy.mockRestore());
    return () => transactions;
  }

  test('a plan stays valid while tokens are refreshed, and while the server rejects a refresh', async () => {
    const planned = await plan(FREEZE);
    await refresh();
    server.answers.set('/token', (_request, response) =>
      response.writeHead(401, JSON_TYPE).end('{"error":"invalid_client"}'),
    );
    await outlive(world, connection);
    expect((await agent.act(READ)).body.code).toBe('client_rejected');
    expect(await plan(FREEZE)).toEqual(planned);
    const applied = await apply(FREEZE, planned.governance_version);
    expect([applied.status, applied.body.changes], applied.text).toEqual([200, planned.changes]);
  });

  test('an apply plans once although tokens are refreshed meanwhile', async () => {
    const transactions = beforeTransaction(refresh);
    expect((await apply(FREEZE)).status).toBe(200);
    expect(transactions()).toBe(1);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['disconnected', () => owner(`/owner/connections/${connection}/oauth/disconnect`)],
    ['connected again', () => connectAtOnce(world, organisation.owner, connection)],
    ['given a secret', () => owner(`/owner/connections/${connection}/secret`, { secret: `${SECRET}-own` })],
    [
      'and another one given another secret',
      async () => owner(`/owner/connections/${(await connectionOf('plain')).id}/secret`, { secret: `${SECRET}-own` }),
    ],
  ])('a plan becomes invalid when a connection is %s', async (_what, change) => {
    const planned = await plan(FREEZE);
    await change();
    expectEnvelope(await apply(FREEZE, planned.governance_version), 409, 'conflict');
    expect((await plan(FREEZE)).governance_version).not.toBe(planned.governance_version);
  });

  test('a plan becomes invalid when a connection is connected for the first time', async () => {
    await owner(`/owner/connections/${connection}/oauth/disconnect`);
    const planned = await plan(FREEZE);
    await connectAtOnce(world, organisation.owner, connection);
    expectEnvelope(await apply(FREEZE, planned.governance_version), 409, 'conflict');
  });

  const ENDS: [string, object][] = [
    ['removes the connection', { connections: {} }],
    ['gives it to another platform', { connections: { main: { platform: 'other' } } }],
    ['gives it a secret', { connections: { main: { platform: 'docs', secret: { env: 'TOKEN' } } } }],
  ];

  test.each(ENDS)('an apply that %s revokes the tokens that were refreshed since its plan', async (_what, document) => {
    const transactions = beforeTransaction(refresh);
    await expectStatus(200, apply(document));
    expect(transactions()).toBe(1);
    expect(revoked).toEqual(newest());
    expect((await connectionOf('main'))?.oauth ?? null).toBe(null);
  });

  test('connecting as another account revokes the previous account’s tokens, including ones refreshed meanwhile', async () => {
    let login = 'ann';
    server.answers.set('/me', (_request, response) =>
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ login })),
    );
    const account = { url: `${server.issuer}/me`, pointer: '/login' };
    const { platforms } = present();
    const named = { ...platforms.docs, auth: server.auth({ account }) };
    expect((await apply({ platforms: { ...platforms, docs: named } })).status).toBe(200);
    await connectAtOnce(world, organisation.owner, connection);
    server.answers.set('/token', async (_request, response) => {
      server.answers.delete('/token');
      await refresh();
      login = 'bob';
      response.writeHead(200, JSON_TYPE).end(JSON.stringify(server.rotate()));
    });
    await connectAtOnce(world, organisation.owner, connection);
    expect(revoked).toEqual([server.given.refresh.at(-2), server.given.access.at(-2)]);
    expect((await agent.act(READ)).status).toBe(200);
  });

  describe.runIf(store === 'postgres')('while another replica stores fresh tokens', () => {
    /** Runs the change, and lets the other replica commit while the change waits for its lock. */
    async function amid(end: () => Promise<void>): Promise<void> {
      const tokens = () =>
        world.db
          .selectFrom('connections')
          .select(['credential', 'refresh_token', 'token_id', 'oauth'])
          .where('id', '=', connection)
          .executeTakeFirstOrThrow();
      const set = (at: Db, columns: Awaited<ReturnType<typeof tokens>>) =>
        at.updateTable('connections').set(columns).where('id', '=', connection).execute();
      const older = await tokens();
      await refresh();
      const fresh = await tokens();
      await set(world.db, older);
      const waiting = async () => {
        const { rows } = await sql`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(world.db);
        expect(rows).toHaveLength(1);
      };
      let ended: Promise<void> | undefined;
      await world.db.transaction().execute(async (tx) => {
        await set(tx, fresh);
        ended = end();
        await vi.waitFor(waiting, { timeout: 5_000 });
      });
      await ended;
    }

    test.each(ENDS)('an apply that %s revokes the fresh tokens', async (_what, document) => {
      await amid(async () => {
        await expectStatus(200, apply(document));
      });
      expect(revoked).toEqual(newest());
    });

    test.each<[string, () => Promise<unknown>]>([
      ['disconnects it', () => owner(`/owner/connections/${connection}/oauth/disconnect`)],
      ['gives it a secret', () => owner(`/owner/connections/${connection}/secret`, { secret: `${SECRET}-own` })],
      [
        'removes it',
        async () => expect((await organisation.ask('DELETE', `/owner/connections/${connection}`)).status).toBe(200),
      ],
    ])('when an owner %s, the fresh tokens are revoked', async (_what, end) => {
      await amid(async () => void (await end()));
      expect(revoked).toEqual(newest());
    });
  });

  test.runIf(store === 'postgres')(
    'another replica uses refreshed tokens at its next call, and no older ones',
    async () => {
      const second = await startReplica(world);
      try {
        const there = second.asks(agent);
        for (let round = 0; round < 3; round++) {
          expect((await there.act(READ)).status).toBe(200);
          const [token] = server.given.access.slice(-1);
          await refresh();
          server.good.delete(token!);
          const { length } = server.asked;
          const called = await there.act(READ);
          expect([called.status, server.asked.length], called.text).toEqual([200, length]);
        }
      } finally {
        second.process.signal('SIGKILL');
      }
    },
  );
});
