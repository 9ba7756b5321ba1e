/** Times stored by a clock that was ahead do not delay anything for as long as the clock was ahead. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { keepLease } from '../../broker/lease.ts';
import { present } from '../../broker/runtime/present.ts';
import { claimTrial, strike } from '../../broker/store/breakers.ts';
import { endFutureTimes } from '../../broker/store/future-times.ts';
import { leaseEnd, renewLease, takeLease } from '../../broker/store/leases.ts';
import { putDeliveries } from '../../broker/store/notice-deliveries.ts';
import { postgresCounter } from '../../broker/store/rate-counts.ts';
import { countRefusal, refusalsAt } from '../../broker/store/refusal-counts.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const MINUTE_MS = 60_000;

describe.each(STORES)(`times of a clock that was ahead, on %s${postgresNote}`, (store) => {
  test('are reset by the next round, and times of a correct clock stay', async () => {
    const world = await startWorld(store);
    const { id: organisation_id, ...organisation } = await world.demoOrganisation();
    const { agentId } = await organisation.agent();
    const { id: agent_id } = await world.db
      .selectFrom('agents')
      .select('id')
      .where('agent_id', '=', agentId)
      .executeTakeFirstOrThrow();
    const now = Date.now();
    const ahead = now + 40 * 60 * MINUTE_MS;
    const breaker = (key: string) => ({
      organisation_id,
      agent_id,
      cause: 'breaker_upstream_failure' as const,
      key,
    });
    const limits = { strikes: 1, windowMs: MINUTE_MS, openMs: MINUTE_MS };
    await strike(world.db, breaker('ahead'), limits, ahead);
    await strike(world.db, breaker('right'), limits, now);
    const agent = { organisation_id, agent_id };
    await countRefusal(world.db, agent, MINUTE_MS, ahead);
    const claimUntil = async (until?: number) => {
      const rows = world.db.updateTable('connections').where('organisation_id', '=', organisation_id);
      if (until !== undefined) await rows.set({ refresh_claim_until: until }).execute();
      const found = await world.db
        .selectFrom('connections')
        .select('refresh_claim_until')
        .where('organisation_id', '=', organisation_id)
        .execute();
      return found.map(({ refresh_claim_until }) => Number(refresh_claim_until));
    };
    await claimUntil(ahead);

    await endFutureTimes(world.db, now);
    expect(await claimTrial(world.db, breaker('ahead'), MINUTE_MS, now)).toBe(true);
    expect(await claimTrial(world.db, breaker('right'), MINUTE_MS, now)).toBe(false);
    expect(await refusalsAt(world.db, agent, MINUTE_MS, now + 2 * MINUTE_MS)).toBe(0);
    expect(await claimUntil()).toEqual([now]);
    await claimUntil(now + MINUTE_MS);
    await endFutureTimes(world.db, now);
    expect(await claimUntil()).toEqual([now + MINUTE_MS]);
  });

  test('delayed messages become due; those delayed by quiet hours, and reminders, stay', async () => {
    const world = await startWorld(store);
    const organisation = await world.demoOrganisation();
    const hook = { name: 'hook', kind: 'webhook', url: 'https://hooks.example/a' };
    const { id: channel_id } = (await organisation.ask('POST', '/owner/channels', hook)).body;
    const now = Date.now();
    const hours = (many: number) => now + many * 60 * MINUTE_MS;
    const delivery = async (due_at: number, more: { created_at?: number; step?: 'reminder' } = {}) => {
      const ids = {
        organisation_id: organisation.id,
        id: randomUUID(),
        channel_id,
        notice_id: randomUUID(),
        subject_id: randomUUID(),
      };
      const plain = {
        event: 'call_held',
        step: 'first',
        attempts: 1,
        state: 'due',
        external_ref: null,
        last_error: null,
      } as const;
      await putDeliveries(world.db, [{ ...ids, ...plain, due_at, created_at: now, ...more }]);
      return ids.id;
    };
    const putOff = [await delivery(hours(40)), await delivery(hours(2), { created_at: hours(2) })];
    const kept = [await delivery(hours(20)), await delivery(hours(100), { step: 'reminder' })];
    await endFutureTimes(world.db, now);
    const rows = await world.db.selectFrom('notice_deliveries').select(['id', 'due_at']).execute();
    const due = new Map(rows.map((row) => [row.id, Number(row.due_at)]));
    expect(putOff.map((id) => due.get(id))).toEqual([now, now]);
    expect(kept.map((id) => due.get(id))).toEqual([hours(20), hours(100)]);
  });
});

describe.each(STORES.filter((store) => store === 'postgres'))(`the clock of %s was ahead${postgresNote}`, (store) => {
  test('a lease taken while it was ahead is taken over once it is not renewed for the length of a lease; a renewed lease is not', async () => {
    const { broker } = (await startWorld(store)).running;
    const { db } = broker.store;
    const ahead = Date.now() + 60 * MINUTE_MS;
    const taken = await takeLease(db, { name: 'work', holder: 'other', now: ahead, until: ahead });
    let renewed = 0;
    const renewing = setInterval(
      () => void renewLease(db, { name: 'work', fence: present(taken, 'fence') }, ahead + ++renewed),
      300,
    );
    let gained = 0;
    const lease = keepLease(broker, 'work', () => gained++);
    await expect.poll(() => renewed, { timeout: 20_000 }).toBeGreaterThan(15);
    expect([gained, lease.fence()]).toEqual([0, undefined]);
    clearInterval(renewing);
    await expect.poll(() => gained, { timeout: 15_000 }).toBe(1);
    await expect.poll(async () => (await leaseEnd(db, 'work')) ?? ahead).toBeLessThan(Date.now() + MINUTE_MS);
    await lease.stop();
  });

  test('a rate limit window started while it was ahead is reset; a window that ends only slightly late is kept', async () => {
    const { db } = (await startWorld(store)).running.broker.store;
    const counter = postgresCounter(db);
    const use = async () => (await counter.add([{ key: 'agent', count: 1 }], MINUTE_MS))[0];
    const move = (ms: number) => sql`update rate_counts set until = until + ${ms} where key = 'agent'`.execute(db);
    expect((await use())?.count).toBe(1);
    await move(5_000);
    expect((await use())?.count).toBe(2);
    await move(60 * MINUTE_MS);
    const again = await use();
    expect(again?.count).toBe(1);
    expect(again?.leftMs).toBeLessThanOrEqual(MINUTE_MS);
    expect((await use())?.count).toBe(2);
  });
});
