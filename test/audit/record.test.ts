import { describe, expect, onTestFinished, test } from 'vitest';
import { AuditUnavailable } from '../../broker/audit/audit-unavailable.ts';
import { type LeftBehind, readsFolder, readsLeftBehind } from '../../broker/audit/in-flight-journal.ts';
import { makeLateRows } from '../../broker/audit/late-rows.ts';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { makeRecorder } from '../../broker/audit/record.ts';
import type { Recorded, Recorder } from '../../broker/audit/recorder.ts';
import { makeRowWriter, type RowWriter } from '../../broker/audit/row-writer.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { verifyCompact } from '../../broker/crypto/jws.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { isRowFault } from '../../broker/store/row-fault.ts';
import { rollback } from '../../broker/store/transaction.ts';
import { auditRow } from '../world/rows.ts';
import { newFolder, postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

/** Result of one write: refused before it reached the store, written, or written with its answer lost. */
type Fate = 'written' | 'refused' | 'answer lost' | { answerLostAfterMs: number };

describe.each(STORES)(`recording on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);

  /** A row owned by the running broker: as an orphan it could be closed by a recovery sweep before its outcome is stored. */
  const ownRow = (over: Partial<AuditRow> = {}) => auditRow({ instance_id: world.running.broker.instanceId, ...over });

  /** A recorder on the real store, whose next writes have these fates; all later ones succeed. */
  function recorderWith(...fates: Fate[]): { recorder: Recorder; writes: number[]; left(): LeftBehind[] } {
    const { broker } = world.running;
    const writes: number[] = [];
    const writer = makeRowWriter(broker);
    const write: RowWriter['write'] = (rows, areNew) => {
      writes.push(rows.length);
      const fate = fates.shift() ?? 'written';
      const accepted = Promise.resolve();
      if (fate === 'refused')
        return { accepted, written: Promise.reject(Object.assign(new Error('the disk is full'), { errcode: 13 })) };
      const real = writer.write(rows, areNew);
      if (fate === 'written') return real;
      const written = real.written.then(async () => {
        if (fate !== 'answer lost') await new Promise((resolve) => setTimeout(resolve, fate.answerLostAfterMs));
        throw new Error('Connection terminated unexpectedly');
      });
      return { accepted: real.accepted, written };
    };
    const instanceId = uuidv4();
    // A data folder of its own, because the world's broker processes journals in the shared one.
    const config = { ...broker.config, dataFolder: newFolder() };
    const { heartbeat } = world.running.services;
    const recorder = makeRecorder({ ...broker, config, instanceId }, heartbeat, { ...writer, write });
    onTestFinished(() => recorder.close());
    return { recorder, writes, left: () => [...readsLeftBehind(readsFolder(config.dataFolder))] };
  }

  const stored = (row: AuditRow) => findAuditRow(world.db, row.organisation_id, row.id);

  /** Expects the stored row to equal this one, with a receipt signed by the broker's evidence key. */
  const expectSigned = (found: AuditRow, row: AuditRow) => {
    expect(rowHash(found)).toBe(rowHash(row));
    expect(found.row_hash).toBe(rowHash(found));
    const { verifyKeys } = world.running.broker.keys.set('evidence');
    const verified = verifyCompact(receiptOf(found)!, verifyKeys, { typ: RECEIPT_TYPE });
    expect(verified).toMatchObject({
      ok: true,
      kid: found.receipt_kid,
      payload: { jti: row.id, row_hash: found.row_hash },
    });
  };

  const finish = (recorder: Recorder, row: AuditRow, sent: boolean) => {
    row.result = 'allowed';
    return recorder.record({ row, value: 'the answer', sent });
  };

  const refused = async (work: Promise<unknown>): Promise<AuditUnavailable> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(AuditUnavailable);
    return error as AuditUnavailable;
  };

  test('concurrent rows are written as one batch, and each is signed over its stored columns', async () => {
    const { recorder, writes } = recorderWith();
    const rows = Array.from({ length: 20 }, () => ownRow());
    await Promise.all(rows.map((row) => finish(recorder, row, false)));
    expect(writes).toEqual([20]);
    for (const row of rows) {
      const found = (await stored(row))!;
      expectSigned(found, row);
    }
  });

  testOnOne(store)(
    'only a recorder creates a Recorded value: no copy, literal or changed value has its type',
    async () => {
      const recorded: Recorded<string> = await finish(recorderWith().recorder, ownRow(), false);
      const take = (given: Recorded<string>) => given.value;
      expect(take(recorded)).toBe('the answer');
      // Each of these lines must be a compile error.
      // @ts-expect-error a copy
      expect(take({ ...recorded })).toBeUndefined();
      // @ts-expect-error a copy with another value
      take({ ...recorded, value: 'another' });
      // @ts-expect-error a literal
      take({ value: 'another' });
      // @ts-expect-error a change
      expect(() => (Object.assign(recorded, {}).value = 'another')).toThrow(TypeError);
    },
  );

  test('one invalid row does not make the other rows of its batch fail', async () => {
    const { recorder } = recorderWith();
    const rows = Array.from({ length: 5 }, () => ownRow());
    const bad = auditRow({ kind: 'nonsense' as 'action' });
    const [error, ...values] = await Promise.all([
      refused(finish(recorder, bad, true)),
      ...rows.map((row) => finish(recorder, row, false)),
    ]);
    expect(error.sent).toBe(true);
    expect(await stored(bad)).toBeUndefined();
    expect(values.map((recorded) => (recorded as Recorded<string>).value)).toEqual(rows.map(() => 'the answer'));
    for (const row of rows) expect(await stored(row)).toMatchObject({ state: 'final' });
  });

  testOnOne(store)('while the store is unavailable, waiting rows are not retried one by one', async () => {
    const { recorder, writes } = recorderWith(...Array<Fate>(50).fill('refused'));
    const rows = Array.from({ length: 40 }, () => ownRow());
    const errors = await Promise.all(rows.map((row) => refused(finish(recorder, row, false))));
    expect(errors.every((error) => !error.sent)).toBe(true);
    expect(writes.length).toBeLessThan(20);
    expect(await stored(rows[0]!)).toBeUndefined();
  });

  testOnOne(store)(
    'C10 a call whose intent cannot be stored is not made, and its row is later closed as not sent',
    async () => {
      const { recorder, writes } = recorderWith(...Array<Fate>(5).fill('refused'));
      const row = ownRow();
      let made = false;
      const error = await refused(
        recorder.intend(row, async () => {
          made = true;
          return await finish(recorder, row, true);
        }),
      );
      expect([made, error.sent]).toEqual([false, false]);
      // A busy machine may manage only two attempts instead of three.
      const [tried, refusals] = [writes.length, 5];
      expect(tried).toBeOneOf([2, 3]);
      for (let left = refusals - tried; left > 0; left--) expect(await recorder.retryLate()).toBe(1);
      expect(await recorder.retryLate()).toBe(0);
      expect(await stored(row)).toMatchObject({ state: 'final', result: 'errored', reason: 'audit_unavailable' });
    },
  );

  test('a claim that returns a rollback: its reason is returned, no intent is stored, no call is made; the next call succeeds', async () => {
    const { recorder } = recorderWith();
    const row = ownRow();
    const claim = async () => rollback('nothing_left' as const);
    const undone = await recorder.intend(row, () => Promise.reject(new Error('it is made')), { claim });
    expect(undone).toEqual(rollback('nothing_left'));
    expect([await stored(row), recorder.isFailing()]).toEqual([undefined, false]);
    const next = ownRow();
    const claimed = { claim: async () => ({ flags: { left: 1 } }) };
    const made = await recorder.intend(next, () => finish(recorder, next, true), claimed);
    expect(made).toHaveProperty('value', 'the answer');
    expect(await stored(next)).toMatchObject({ state: 'final', flags: expect.stringContaining('"left":1') });
  });

  testOnOne(store)('storing an outcome is retried until it succeeds', async () => {
    const { recorder } = recorderWith('written', 'refused', 'refused', 'refused');
    const row = ownRow();
    expect((await recorder.intend(row, () => finish(recorder, row, true))).value).toBe('the answer');
    expect(await stored(row)).toMatchObject({ state: 'final', result: 'allowed' });
  });

  testOnOne(store)(
    'C11 an outcome that cannot be stored in time is not returned, and is stored once the store is available again',
    async () => {
      const { recorder } = recorderWith('written', ...Array<Fate>(200).fill('refused'));
      const row = ownRow();
      const began = performance.now();
      const error = await refused(recorder.intend(row, () => finish(recorder, row, true)));
      expect(error.sent).toBe(true);
      expect(performance.now() - began).toBeGreaterThan(4_900);
      expect(await stored(row)).toMatchObject({ state: 'intent' });
      let left = 1;
      while (left > 0) left = await recorder.retryLate();
      const found = (await stored(row))!;
      expect(found).toMatchObject({ state: 'final', result: 'allowed' });
      expectSigned(found, row);
    },
  );

  testOnOne(store)('a deferred outcome that the store always rejects does not block those after it', async () => {
    const kept: string[] = [];
    const [bad, good] = [ownRow(), ownRow()];
    const late = makeLateRows(
      world.running.broker.log,
      async ({ row }: { row: AuditRow }) => {
        if (row === bad) throw Object.assign(new Error('a value too large'), { code: '54000' });
        kept.push(row.id);
        return true;
      },
      isRowFault,
    );
    for (const row of [bad, good]) late.keep({ row });
    expect(await late.retry()).toBe(0);
    expect(kept).toEqual([good.id]);
  });

  test.each([
    ['a bug in the code', new TypeError('x is not a function')],
    ['a statement of too many parts', Object.assign(new Error('too many SQL variables'), { errcode: 1 })],
  ])('a companion that fails by %s does not affect other calls', async (_, fault) => {
    const { recorder } = recorderWith();
    const row = ownRow();
    const companion = { store: () => Promise.reject(fault) };
    const ending = (entry: AuditRow) => ({ ...entry, result: 'allowed' as const });
    const error = await refused(recorder.record({ row: ending(row), value: 'a', sent: true, companion }));
    expect(error.sent).toBe(true);
    expect([recorder.isFailing(), recorder.backlog().late]).toEqual([false, 0]);
    const next = ownRow();
    expect((await recorder.intend(next, () => finish(recorder, next, true))).value).toBe('the answer');
  });

  testOnOne(store)('the row of a call that was refused after its intent is closed later, too', async () => {
    const { recorder } = recorderWith('written', ...Array<Fate>(4).fill('refused'));
    const row = ownRow();
    const error = await refused(recorder.intend(row, () => finish(recorder, row, false)));
    expect(error.sent).toBe(false);
    let left = 1;
    while (left > 0) left = await recorder.retryLate();
    const found = (await stored(row))!;
    expect(found).toMatchObject({ state: 'final' });
    expectSigned(found, row);
  });

  test('ST-10 a write whose answer is lost is retried without further effect: intent and outcome', async () => {
    const { recorder, writes } = recorderWith('written', 'answer lost', 'written', 'answer lost');
    // Starts the recording thread first, so that the intent waits only for the store.
    await finish(recorder, ownRow(), false);
    const row = ownRow();
    let made = 0;
    const { value } = await recorder.intend(row, async () => {
      made++;
      return await finish(recorder, row, true);
    });
    expect([value, made, writes.length]).toEqual(['the answer', 1, 5]);
    const found = (await stored(row))!;
    expect(found).toMatchObject({ state: 'final', result: 'allowed' });
    expectSigned(found, row);
  });

  testOnOne(store)(
    'ST-10 after a connection that breaks slowly the write is retried once; after a timeout of the store it is not',
    async () => {
      const { recorder, writes } = recorderWith('written', { answerLostAfterMs: 400 }, 'written', {
        answerLostAfterMs: 400,
      });
      await finish(recorder, ownRow(), false);
      const row = ownRow();
      // The intent of one call, and then the decision of another.
      expect((await recorder.intend(row, () => finish(recorder, row, true))).value).toBe('the answer');
      const other = ownRow();
      expect((await finish(recorder, other, false)).value).toBe('the answer');
      expect(writes.length).toBe(6);
      expectSigned((await stored(other))!, other);
      const silent = recorderWith({ answerLostAfterMs: 5_000 });
      expect((await refused(finish(silent.recorder, ownRow(), false))).sent).toBe(false);
      expect(silent.writes.length).toBe(1);
    },
  );

  test('R7 a row that another process closed keeps its signed state, and the late outcome is not returned', async () => {
    const { recorder } = recorderWith();
    const other = recorderWith().recorder;
    const row = ownRow();
    const late: unknown[] = [];
    const companion = { store: async () => undefined, tooLate: async (value: unknown) => void late.push(value) };
    const error = await refused(
      recorder.intend(row, async () => {
        const found = (await stored(row))!;
        found.result = 'errored';
        found.reason = 'outcome_unknown';
        await other.record({ row: found, value: undefined });
        return await recorder.record({ row: { ...row, result: 'allowed' }, value: 'late', sent: true, companion });
      }),
    );
    expect([error.sent, late]).toEqual([true, ['late']]);
    expect(await stored(row)).toMatchObject({ state: 'final', result: 'errored', reason: 'outcome_unknown' });
  });

  test.each(['intent', 'final'])(
    'when another process has taken over the call of this row, nothing is stored or retried: %s',
    async (state) => {
      const { recorder } = recorderWith();
      const row = ownRow();
      const asked: string[] = [];
      const companion = {
        store: async (_: unknown, { state: of }: Readonly<AuditRow>) => {
          asked.push(of);
          return of === state ? ('taken_over' as const) : undefined;
        },
      };
      let isMade = false;
      const end = () => recorder.record({ row: { ...row, result: 'allowed' }, value: 'made', sent: true, companion });
      const make = () => {
        isMade = true;
        return end();
      };
      const error = await refused(recorder.intend(row, make, { companion }));
      const isIntent = state === 'intent';
      expect([isMade, error.sent, asked]).toEqual(
        isIntent ? [false, false, ['intent']] : [true, true, ['intent', 'final']],
      );
      expect((await stored(row))?.state).toBe(isIntent ? undefined : 'intent');
      expect([recorder.isFailing(), recorder.backlog().late]).toEqual([false, 0]);
    },
  );

  test('no call is made when its intent meets a final row of the same id', async () => {
    const { recorder } = recorderWith();
    const row = ownRow();
    await finish(recorder, { ...row }, false);
    let made = false;
    const error = await refused(
      recorder.intend(row, async () => {
        made = true;
        return await finish(recorder, row, true);
      }),
    );
    expect([made, error.sent]).toEqual([false, false]);
  });

  testOnOne(store)('the row of a call that throws is closed as unknown', async () => {
    const { recorder } = recorderWith();
    for (const method of ['PATCH', 'GET']) {
      const row = ownRow({ method });
      const error = await refused(recorder.intend(row, () => Promise.reject(new TypeError('a bug'))));
      expect(error.sent).toBe(true);
      expect(await stored(row)).toMatchObject({ state: 'final', result: 'errored', reason: 'outcome_unknown' });
    }
  });

  testOnOne(store)(
    'a read has a journal entry instead of an intent row, which is removed when its row is stored',
    async () => {
      const { recorder, writes, left } = recorderWith();
      const row = auditRow({ method: 'GET', scope: 'demo:read', path: '/items/1' });
      const { value } = await recorder.intend(row, async () => {
        expect(writes).toEqual([]);
        expect(left(), 'while the process lives').toEqual([]);
        return await finish(recorder, row, true);
      });
      expect(value).toBe('the answer');
      await recorder.close();
      expect(left()).toEqual([]);
    },
  );

  testOnOne(store)('the journal entry of a read can be read after its process has ended', async () => {
    const { recorder, left } = recorderWith();
    const row = auditRow({ method: 'GET', path: '/items/2', decision: '{"matched":["é\\n"]}' });
    await recorder.intend(row, async () => {
      // Simulates the end of the process: the journal is no longer locked.
      await recorder.close();
      const found = left();
      expect(found.map(({ rows }) => rows)).toEqual([[row]]);
      found[0]!.remove();
      expect(left()).toEqual([]);
      return await finish(recorder, row, true);
    });
  });

  testOnOne(store)(
    'journal entries of finished reads are removed while others are in flight, and their slots are reused',
    async () => {
      const { recorder, left } = recorderWith();
      const read = () => ownRow({ method: 'GET', scope: 'demo:read', path: '/items/3' });
      const [long, again] = [read(), read()];
      await recorder.intend(long, async () => {
        await Promise.all(
          Array.from({ length: 5 }, async () => {
            const row = read();
            await recorder.intend(row, () => finish(recorder, row, true));
          }),
        );
        await recorder.retryLate();
        await recorder.intend(again, async () => {
          await recorder.retryLate();
          await recorder.close();
          const [found] = left();
          expect(found!.rows.map(({ id }) => id).toSorted()).toEqual([long.id, again.id].toSorted());
          found!.remove();
          return await finish(recorder, again, true);
        });
        return await finish(recorder, long, true);
      });
    },
  );

  testOnOne(store)('a read whose row is too large for the journal has an intent row', async () => {
    const { recorder, writes } = recorderWith();
    const row = auditRow({ method: 'GET', decision: JSON.stringify({ matched: 'x'.repeat(9_000) }) });
    await recorder.intend(row, async () => {
      expect(writes).toEqual([1]);
      expect(await stored(row)).toMatchObject({ state: 'intent' });
      return await finish(recorder, row, true);
    });
    expect(await stored(row)).toMatchObject({ state: 'final' });
  });

  testOnOne(store)('a stop waits for the calls in flight, up to a timeout', async () => {
    const { recorder } = recorderWith();
    const row = ownRow();
    let answer: (() => void) | undefined;
    const call = recorder.intend(row, async () => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return await finish(recorder, row, true);
    });
    const began = performance.now();
    await recorder.settled(100);
    expect(performance.now() - began).toBeGreaterThan(95);
    const settled = recorder.settled(10_000);
    answer!();
    await settled;
    expect(await stored(row)).toMatchObject({ state: 'final' });
    await call;
  });
});
