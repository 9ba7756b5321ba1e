/** Checkpoints of many logs: each gets its own, however many grow and however many rows wait for their places. */
import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import { send } from '../world/agent.ts';
import { fresh, givenWorld } from '../world/given.ts';
import { READ } from '../world/requests.ts';
import { postgresNote, STORES } from '../world/stores.ts';

/** More than are signed at once. */
const MANY = 130;

describe.each(STORES)(`the sequencer on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const db = () => world.running.broker.store.db;

  /** Organisations like this one, and nothing in them. */
  const organisations = async (count: number): Promise<string[]> => {
    const like = await db()
      .selectFrom('organisations')
      .selectAll()
      .where('id', '=', organisation.id)
      .executeTakeFirstOrThrow();
    const made = Array.from({ length: count }, () => randomUUID()).map((id) => ({ ...like, id, name: id }));
    await db().insertInto('organisations').values(made).execute();
    return made.map(({ id }) => id);
  };
  const addRows = async (ids: readonly string[]): Promise<void> => {
    const rows = ids.map((organisation_id) => ({
      organisation_id,
      row_id: randomUUID(),
      row_hash: randomBytes(32).toString('hex'),
      finished_at: Date.now(),
    }));
    await db().insertInto('log_pending').values(rows).execute();
  };
  const unsigned = async (ids: readonly string[]): Promise<number> => {
    const signed = await db()
      .selectFrom('receipt_logs')
      .select('organisation_id')
      .where('organisation_id', 'in', ids)
      .where('checkpoint_size', 'is not', null)
      .execute();
    return ids.length - signed.length;
  };

  test(`each of ${MANY} logs that grow all the time gets checkpoints`, async () => {
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

  test('a log gets its checkpoint while rows of another one keep waiting for their places', async () => {
    const [busy, quiet] = (await organisations(2)) as [string, string];
    await addRows([quiet]);
    // Made by the store itself, in one statement instead of twelve of 20,000 parameters.
    await sql`insert into log_pending (organisation_id, row_id, row_hash, finished_at)
      with recursive made(n) as (select 1 union all select n + 1 from made where n < 60000)
      select ${busy}, 'row ' || n, ${'00'.repeat(32)}, ${sql.lit(Date.now())} from made`.execute(db());
    await expect.poll(() => unsigned([quiet]), { timeout: 30_000, interval: 20 }).toBe(0);
    const waiting = await db().selectFrom('log_pending').select('row_id').limit(1).execute();
    expect(waiting).toHaveLength(1);
    await db().deleteFrom('log_pending').execute();
  }, 180_000);

  test('for how long rows have had no checkpoint is measured', async () => {
    const [late] = (await organisations(1)) as [string];
    await addRows([late]);
    await expect.poll(() => unsigned([late]), { timeout: 30_000, interval: 250 }).toBe(0);
    const now = Date.now();
    await db()
      .updateTable('log_entries')
      .set({ last_at: now - 100_000 })
      .where('organisation_id', '=', late)
      .execute();
    // It is not due for five seconds.
    const checkpoint = { checkpoint_size: null, checkpoint_at: now };
    await db().updateTable('receipt_logs').set(checkpoint).where('organisation_id', '=', late).execute();
    const { text } = await send(`${world.running.baseUrl}/metrics`, {});
    const [, seconds] = /^agent_broker_log_oldest_unsigned_seconds (\S+)$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(100);
    expect(Number(seconds)).toBeLessThan(200);
  }, 180_000);

  test('what a log got by a clock that was ahead keeps no agent of another one from new checkpoints', async () => {
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
