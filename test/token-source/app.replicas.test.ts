/** Several replicas and one App: a replica uses the token that another one obtained. */
import { describe, expect, test } from 'vitest';
import { claimUpstreamToken } from '../../broker/store/upstream-tokens.ts';
import { givenReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenAppWorld, READ } from './app-world.ts';

describe.runIf(STORES.includes('postgres'))(`an App and replicas on postgres${postgresNote}`, () => {
  const app = givenAppWorld('postgres');
  const { host, world } = app;
  const replica = givenReplica(world);

  test('concurrent calls on two replicas make one exchange', async () => {
    host.slowMs = 300;
    const agents = await Promise.all(Array.from({ length: 5 }, () => app.agent()));
    const there = agents.map((agent) => replica.asks(agent));
    const answers = await Promise.all(
      [...agents, ...there].flatMap((agent) => Array.from({ length: sized(2, 5) }, () => agent.act(READ))),
    );
    expect(answers.map(({ status, text }) => [status, text])).toEqual(answers.map(({ text }) => [200, text]));
    expect(host.exchanges).toHaveLength(1);
  });
});

describe.each(STORES)(`an abandoned claim on %s${postgresNote}`, (store) => {
  const app = givenAppWorld(store);
  const { host, world } = app;

  test('expires 3 s after its process died, and not while that process is getting the token', async () => {
    const agent = await app.agent();
    host.slowMs = 5_000;
    const waiting = agent.act(READ);
    await expect.poll(() => host.exchanges.length).toBe(1);
    const left = async () => {
      const { claim_until: until } = await world.db
        .selectFrom('upstream_tokens')
        .select('claim_until')
        .where('claim', 'is not', null)
        .executeTakeFirstOrThrow();
      return Number(until) - world.running.broker.clock();
    };
    expect(await left()).toBeLessThanOrEqual(3_000);
    const until = performance.now() + 4_000;
    while (performance.now() < until) {
      const ms = await left();
      expect([ms > 0, ms <= 3_000]).toEqual([true, true]);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect((await waiting).status).toBe(200);
    expect(host.exchanges).toHaveLength(1);
  });

  test('is waited for, and taken over when its lease has expired', async () => {
    const agent = await app.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const row = await world.db
      .selectFrom('upstream_tokens')
      .selectAll()
      .where('organisation_id', '=', app.organisation.id)
      .executeTakeFirstOrThrow();
    const place = { organisationId: row.organisation_id, connectionId: row.connection_id, purpose: row.purpose };
    // The token is due, and a dead process had claimed its renewal.
    world.clock.skewMs += 56 * 60_000;
    const now = world.running.broker.clock();
    const claim = { id: 'x', name: 'gone', now, until: now + 30_000, refused: undefined };
    expect(await claimUpstreamToken(world.db, place, claim)).toBe(true);
    expect(await claimUpstreamToken(world.db, place, { ...claim, name: 'late' })).toBe(false);
    const waiting = agent.act(READ);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(host.exchanges).toHaveLength(1);
    world.clock.skewMs += 31_000;
    expect((await waiting).status).toBe(200);
    expect(host.exchanges).toHaveLength(2);
  });
});
