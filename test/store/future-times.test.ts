/** What a clock that was ahead put off does not wait for as long as that clock was ahead. */
import { describe, expect, test } from 'vitest';
import { claimTrial, strike } from '../../broker/store/breakers.ts';
import { endFutureTimes } from '../../broker/store/future-times.ts';
import { countRefusal, refusalsAt } from '../../broker/store/refusal-counts.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const MINUTE_MS = 60_000;

describe.each(STORES)(`times of a clock that was ahead, on %s${postgresNote}`, (store) => {
  test('end with the next round, and those of the right clock stay', async () => {
    const world = await startWorld(store);
    const { db } = world.running.broker.store;
    const { id: organisation_id, ...organisation } = await world.demoOrganisation();
    const { agentId } = await organisation.agent();
    const { id: agent_id } = await db
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
    await strike(db, breaker('ahead'), limits, ahead);
    await strike(db, breaker('right'), limits, now);
    const agent = { organisation_id, agent_id };
    await countRefusal(db, agent, MINUTE_MS, ahead);
    const claimUntil = async (until?: number) => {
      const rows = db.updateTable('connections').where('organisation_id', '=', organisation_id);
      if (until !== undefined) await rows.set({ refresh_claim_until: until }).execute();
      const found = await db
        .selectFrom('connections')
        .select('refresh_claim_until')
        .where('organisation_id', '=', organisation_id)
        .execute();
      return found.map(({ refresh_claim_until }) => Number(refresh_claim_until));
    };
    await claimUntil(ahead);

    await endFutureTimes(db, now);
    expect(await claimTrial(db, breaker('ahead'), MINUTE_MS, now)).toBe(true);
    expect(await claimTrial(db, breaker('right'), MINUTE_MS, now)).toBe(false);
    expect(await refusalsAt(db, agent, MINUTE_MS, now + 2 * MINUTE_MS)).toBe(0);
    expect(await claimUntil()).toEqual([now]);
    await claimUntil(now + MINUTE_MS);
    await endFutureTimes(db, now);
    expect(await claimUntil()).toEqual([now + MINUTE_MS]);
  });
});
