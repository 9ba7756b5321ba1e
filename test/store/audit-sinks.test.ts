/** Cursors of audit sinks: who may move them, and which sinks are due. */
import { describe, expect, test } from 'vitest';
import {
  addSink,
  beginBatch,
  changeSink,
  deleteSink,
  failBatch,
  findSink,
  finishBatch,
  listDueSinks,
  listSinks,
  pushedTo,
  shortenBatch,
  sinkNumbers,
} from '../../broker/store/audit-sinks.ts';
import { takeLease } from '../../broker/store/leases.ts';
import { moveHead } from '../../broker/store/receipt-logs.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { shared, startWorld } from '../world/world.ts';

describe.each(STORES)(`cursors of audit sinks on %s${postgresNote}`, (store) => {
  const world = shared(() => startWorld(store));

  test('are moved only by the holder of the lease, from the current position, over the batch that was begun', async () => {
    // The pusher of this broker uses another lease.
    const name = 'test of the cursor';
    const until = Number.MAX_SAFE_INTEGER;
    const fence = (await takeLease(world.db, { name, holder: 'a', now: 0, until }))!;
    const lease = { name, fence };
    const { id: organisation_id } = await world.organisation();
    const id = crypto.randomUUID();
    const sink = {
      organisation_id,
      id,
      name: 'siem',
      kind: 'webhook',
      format: 'json',
      settings: '{}',
      secret: null,
      secret_reference: null,
      status: 'active' as const,
      next_index: 0,
      batch_end: null,
      rejected_rows: 0,
      delivered_at: null,
      failing_since: null,
      failures: 0,
      last_error: null,
      retry_at: null,
      created_at: 0,
    };
    expect(await addSink(world.db, { ...sink, status: 'paused' })).toBe(true);
    expect(await addSink(world.db, { ...sink, id: crypto.randomUUID() })).toBe(false);
    // Of the same organisation, and of another one; neither is changed below.
    const { id: elsewhere } = await world.organisation();
    const neighbours = [
      { ...sink, id: crypto.randomUUID(), name: 'another', status: 'paused' as const },
      { ...sink, organisation_id: elsewhere, id: crypto.randomUUID() },
    ];
    for (const one of neighbours) expect(await addSink(world.db, one)).toBe(true);
    const sinkNames = async () => (await listSinks(world.db, organisation_id)).map((one) => one.name);
    expect(await sinkNames()).toEqual(['another', 'siem']);
    expect(await findSink(world.db, { organisation_id: elsewhere, id })).toBeUndefined();
    expect(await moveHead(world.db, { organisation_id, origin: 'localhost/orgs/1', size: 10, root: '', from: 0 })).toBe(
      true,
    );
    const now = 1_795_000_000_000;
    const due = async (at = now) =>
      (await listDueSinks(world.db, { now: at, until: at + 60_000 })).filter((one) => one.id === id).length;
    expect(await due()).toBe(0);
    // No pusher sends to this sink, because its kind is unknown.
    await changeSink(world.db, sink, { status: 'active', kind: 'unknown', retry_at: now });
    expect([await due(now - 1), await due(now)]).toEqual([0, 1]);
    // A retry time after `until` was set by a clock that was ahead.
    expect([await due(now - 60_000), await due(now - 60_001)]).toEqual([0, 1]);
    const batch = { organisation_id, id, next_index: 0 };
    expect(await beginBatch(world.db, batch, 4, { name, fence: fence + 1 })).toBe(false);
    expect(await beginBatch(world.db, { ...batch, next_index: 1 }, 4, lease)).toBe(false);
    expect(await beginBatch(world.db, batch, 4, lease)).toBe(true);
    expect(await failBatch(world.db, batch, { now, why: 'down', retryAt: now + 1_000 }, lease)).toBe(true);
    expect(await failBatch(world.db, batch, { now: now + 5, why: 'still', retryAt: now + 2_000 }, lease)).toBe(true);
    const failing = { failures: 2, failing_since: now, last_error: 'still', retry_at: now + 2_000, batch_end: 4 };
    expect(await findSink(world.db, sink)).toMatchObject({ ...failing, next_index: 0, log_size: 10 });
    expect((await sinkNumbers(world.db)).find(({ kind }) => kind === 'unknown')).toEqual({
      kind: 'unknown',
      behind: 10,
      failing: 1,
    });
    const shorten = (from: number, to: number, by = lease) =>
      shortenBatch(world.db, batch, { end: from, shorterEnd: to }, by);
    expect(await shorten(4, 2, { name, fence: fence + 1 })).toBe(false);
    expect(await shorten(8, 2)).toBe(false);
    expect(await shorten(4, 2)).toBe(true);
    expect(await findSink(world.db, sink)).toMatchObject({ ...failing, batch_end: 2 });
    expect(await shorten(2, 4)).toBe(true);
    const finish = (end: number, by = lease) => finishBatch(world.db, batch, { end, now, rejected: 1, why: null }, by);
    expect(await finish(5)).toBe(false);
    expect(await finish(4, { name, fence: fence + 1 })).toBe(false);
    expect(await finish(4)).toBe(true);
    expect(await finish(4)).toBe(false);
    const working = { next_index: 4, batch_end: null, failures: 0, failing_since: null, retry_at: null };
    expect(await findSink(world.db, sink)).toMatchObject({ ...working, rejected_rows: 1, delivered_at: now });
    expect(await pushedTo(world.db, organisation_id)).toBe(4);
    await world.db.updateTable('organisations').set({ restored: '{}' }).where('id', '=', organisation_id).execute();
    expect(await due()).toBe(0);
    await world.db.updateTable('organisations').set({ restored: null }).where('id', '=', organisation_id).execute();
    expect(await due()).toBe(1);
    await deleteSink(world.db, sink);
    expect(await findSink(world.db, sink)).toBeUndefined();
    expect(await sinkNames()).toEqual(['another']);
    for (const one of neighbours) expect(await findSink(world.db, one)).toMatchObject(one);
  });
});
