/** Checkpoints of many logs: each log gets its own, however many logs grow and however many rows are pending. */
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { findIndex } from '../../broker/receipt-log/find-place.ts';
import { rootOfEdge } from '../../broker/receipt-log/merkle.ts';
import { appendRows, readEdge } from '../../broker/receipt-log/tree.ts';
import { send } from '../world/agent.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, READ } from '../world/world.ts';

/** More logs than one round signs. */
const MANY = 130;

describe.each(STORES)(`the sequencer on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());

  /** Creates empty organisations like this one. */
  const organisations = async (count: number): Promise<string[]> => {
    const like = await world.db
      .selectFrom('organisations')
      .selectAll()
      .where('id', '=', organisation.id)
      .executeTakeFirstOrThrow();
    const made = Array.from({ length: count }, () => randomUUID()).map((id) => ({ ...like, id, name: id }));
    await world.db.insertInto('organisations').values(made).execute();
    return made.map(({ id }) => id);
  };
  const addRows = async (ids: readonly string[]): Promise<void> => {
    const rows = ids.map((organisation_id) => ({
      organisation_id,
      row_id: randomUUID(),
      row_hash: randomBytes(32).toString('hex'),
      finished_at: Date.now(),
    }));
    await world.db.insertInto('log_pending').values(rows).execute();
  };
  const unsigned = async (ids: readonly string[]): Promise<number> => {
    const signed = await world.db
      .selectFrom('receipt_logs')
      .select('organisation_id')
      .where('organisation_id', 'in', ids)
      .where('checkpoint_size', 'is not', null)
      .execute();
    return ids.length - signed.length;
  };

  test('the edge of a log, which is cached, keeps no more memory alive than its hashes', async () => {
    const [id] = (await organisations(1)) as [string];
    const edge = await readEdge(world.db, id, 0, '');
    for (let batch = 0; batch < 300; batch++) {
      const [ids, row_hashes] = [randomUUID(), randomBytes(32).toString('hex')];
      const rows = [{ organisation_id: id, rows: 1, ids, row_hashes, last_at: Date.now() }];
      await appendRows(world.db, id, edge, rows, Date.now());
      // What other requests allocate in the meantime: so that two hashes are hardly ever in one pool of Buffers.
      for (let used = 0; used < Buffer.poolSize; used += 1_000) Buffer.from('x'.repeat(1_000));
    }
    const kept = new Set([edge.ids, edge.rowHashes, ...edge.tiles.flat()].map(({ buffer }) => buffer));
    const bytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0);
    // 300 rows: 44 of them in the last tile, with hash, id and hash of the row, and the hash of the full tile.
    expect([edge.size, bytes]).toEqual([300, 44 * (32 + 16 + 32) + 32]);
  });

  test('an edge read from the store is the one that appended the rows, and rows are found in any tile', async () => {
    const [id] = (await organisations(1)) as [string];
    const edge = await readEdge(world.db, id, 0, '');
    const now = Date.now();
    const all: string[] = [];
    const root = () => Buffer.from(rootOfEdge(edge)).toString('base64');
    for (const size of [1, 255, 256, 257, 512, 65_535, 65_536, 65_537, 66_000]) {
      const rows = size - all.length;
      const ids = Array.from({ length: rows }, () => randomUUID());
      all.push(...ids);
      const row_hashes = randomBytes(rows * 32).toString('hex');
      await appendRows(
        world.db,
        id,
        edge,
        [{ organisation_id: id, rows, ids: ids.join(''), row_hashes, last_at: now }],
        now,
      );
      expect(await readEdge(world.db, id, size, root()), `${size} rows`).toEqual(edge);
    }
    const indexOf = (row: string) =>
      findIndex(world.running.broker, { organisation_id: id, id: row, finished_at: now, created_at: now });
    for (const at of [0, 255, 256, 10_000, 65_999]) expect(await indexOf(all[at]!)).toBe(at);
    expect(await indexOf(randomUUID())).toBeUndefined();
    const damaged = async (table: 'log_tiles' | 'log_entries', words: string) => {
      await world.db.deleteFrom(table).where('organisation_id', '=', id).where('tile_index', '>', 0).execute();
      await expect(readEdge(world.db, id, edge.size, root())).rejects.toThrow(words);
    };
    const shorter = { hashes: Buffer.alloc(32) };
    await world.db
      .updateTable('log_tiles')
      .set(shorter)
      .where('organisation_id', '=', id)
      .where('level', '=', 1)
      .execute();
    await expect(readEdge(world.db, id, edge.size, root())).rejects.toThrow('another root');
    await damaged('log_tiles', 'is missing');
    await damaged('log_entries', 'is missing');
  });

  test(`each of ${MANY} constantly growing logs gets checkpoints`, async () => {
    const ids = await organisations(MANY);
    await expect
      .poll(
        async () => {
          await addRows(ids);
          return await unsigned(ids);
        },
        { timeout: 30_000, interval: 500 },
      )
      .toBe(0);
  }, 180_000);

  test('a log gets its checkpoint while many rows of another log are pending', async () => {
    const [busy, quiet] = (await organisations(2)) as [string, string];
    await addRows([quiet]);
    // Generated by the store, in one statement instead of twelve with 20,000 parameters.
    await sql`insert into log_pending (organisation_id, row_id, row_hash, finished_at)
      with recursive made(n) as (select 1 union all select n + 1 from made where n < 60000)
      select ${busy}, 'row ' || n, ${'00'.repeat(32)}, ${sql.lit(Date.now())} from made`.execute(world.db);
    await expect.poll(() => unsigned([quiet]), { timeout: 30_000, interval: 20 }).toBe(0);
    const waiting = await world.db.selectFrom('log_pending').select('row_id').limit(1).execute();
    expect(waiting).toHaveLength(1);
    await world.db.deleteFrom('log_pending').execute();
  }, 180_000);

  // On SQLite no other process can take the lease.
  test.runIf(store === 'postgres')(
    'a process that loses the lease before it signs stores no checkpoint, and signs again when it has the lease',
    async () => {
      const [id] = (await organisations(1)) as [string];
      await addRows([id]);
      await expect.poll(() => unsigned([id]), { timeout: 30_000, interval: 250 }).toBe(0);
      const { recorder } = world.running.services;
      const { record } = recorder;
      const lost = Promise.withResolvers<void>();
      // The process announces its key in between, as the log was signed by another one.
      const spy = vi.spyOn(recorder, 'record').mockImplementation(async (entry: Parameters<typeof record>[0]) => {
        if (entry.row.reason !== 'log_key_announced') return await record(entry as never);
        spy.mockRestore();
        const recorded = await record(entry as never);
        await world.db
          .updateTable('leases')
          .set((eb) => ({ fence: eb('fence', '+', 1), holder: 'another', until: Date.now() + 4_000 }))
          .where('name', '=', 'receipt log')
          .execute();
        lost.resolve();
        return recorded;
      });
      onTestFinished(() => spy.mockRestore());
      const other = { signed_with: 'another key' };
      await world.db.updateTable('receipt_logs').set(other).where('organisation_id', '=', id).execute();
      await addRows([id]);
      await lost.promise;
      const signedWith = async () => {
        const log = world.db.selectFrom('receipt_logs').select('signed_with').where('organisation_id', '=', id);
        return (await log.executeTakeFirstOrThrow()).signed_with;
      };
      await pause(2_000);
      expect(await signedWith()).toBe(other.signed_with);
      await expect.poll(signedWith, { timeout: 30_000, interval: 250 }).not.toBe(other.signed_with);
    },
    180_000,
  );

  test('a metric reports for how long rows have had no checkpoint', async () => {
    const [late] = (await organisations(1)) as [string];
    await addRows([late]);
    await expect.poll(() => unsigned([late]), { timeout: 30_000, interval: 250 }).toBe(0);
    const now = Date.now();
    await world.db
      .updateTable('log_entries')
      .set({ last_at: now - 100_000 })
      .where('organisation_id', '=', late)
      .execute();
    // The next checkpoint is not due for five seconds.
    const checkpoint = { checkpoint_size: null, checkpoint_at: now };
    await world.db.updateTable('receipt_logs').set(checkpoint).where('organisation_id', '=', late).execute();
    const { text } = await send(`${world.running.baseUrl}/metrics`, {});
    const [, seconds] = /^agent_broker_log_oldest_unsigned_seconds (\S+)$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(100);
    expect(Number(seconds)).toBeLessThan(200);
  }, 180_000);

  test('a checkpoint made by a clock that was ahead does not hide new checkpoints of other logs', async () => {
    const other = await world.demoOrganisation();
    const agent = await other.agent();
    const size = async () => (await agent.act(READ)).body._meta.log?.size ?? 0;
    await expect.poll(size, { timeout: 30_000, interval: 250 }).toBeGreaterThan(0);
    const [ahead] = (await organisations(1)) as [string];
    world.clock.skewMs = 40 * 3_600_000;
    onTestFinished(() => {
      world.clock.skewMs = 0;
    });
    await addRows([ahead]);
    await expect.poll(() => world.running.services.logHeads.of(ahead), { timeout: 30_000 }).toBeDefined();
    world.clock.skewMs = 0;
    const before = await size();
    await expect.poll(size, { timeout: 30_000, interval: 500 }).toBeGreaterThan(before);
  }, 180_000);
});
