import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { makeRowWriter } from '../../broker/audit/row-writer.ts';
import type { Broker } from '../../broker/broker.ts';
import { verifyCompact } from '../../broker/crypto/jws.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { isRowFault } from '../../broker/store/row-fault.ts';
import { auditRow } from '../world/rows.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { shared, startWorld } from '../world/world.ts';

const final = (over: Partial<AuditRow> = {}) =>
  auditRow({ state: 'final', finished_at: 1, result: 'allowed', ...over });

const CASES = STORES.flatMap((store) => [[store, 'new', true] as const, [store, 'perhaps there', false] as const]);

describe.each(CASES)(`writing rows, on %s, that are %s${postgresNote}`, (kind, _, areNew) => {
  const broker = shared(async () => (await startWorld(kind)).running.broker);

  const open = (over: Partial<Broker> = {}) => {
    const writer = makeRowWriter({ ...broker, ...over });
    onTestFinished(() => writer.close());
    return { ...writer, write: (rows: readonly AuditRow[]) => writer.write(rows, areNew) };
  };
  const stored = (row: AuditRow) => findAuditRow(broker.store.db, row.organisation_id, row.id);

  test('final rows are hashed and signed, intents are not, and rows that are final in the store are not written again', async () => {
    const writer = open();
    // Owned by the running process, so that no recovery sweep closes it.
    const intent = auditRow({ instance_id: broker.instanceId });
    const rows = [final(), intent, final({ path: '/é', detail: '\u202e' })];
    const ids = rows.map(({ id }) => id);
    expect(await writer.write(rows).written).toEqual(new Set(ids));
    for (const row of rows) {
      const found = (await stored(row))!;
      if (row.state === 'intent') {
        expect(found).toEqual(row);
        continue;
      }
      expect(found.row_hash).toBe(rowHash(row));
      const keys = broker.keys.set('evidence').verifyKeys;
      expect(verifyCompact(receiptOf(found)!, keys, { typ: RECEIPT_TYPE })).toMatchObject({
        ok: true,
        kid: found.receipt_kid,
        payload: { jti: row.id, row_hash: found.row_hash },
      });
    }
    expect(await writer.write(rows).written).toEqual(new Set([ids[1]]));
  });

  test('concurrent groups are each written completely', async () => {
    const writer = open();
    const groups = Array.from({ length: 12 }, (_, size) => Array.from({ length: size + 1 }, () => final()));
    const written = await Promise.all(groups.map((rows) => writer.write(rows).written));
    expect(written).toEqual(groups.map((rows) => new Set(rows.map(({ id }) => id))));
  });

  test('a row that cannot be stored or signed is reported as a row fault, and its group is rolled back', async () => {
    const writer = open();
    for (const bad of [final({ kind: 'nonsense' as 'action' }), final({ detail: '\ud800' })]) {
      const twin = final();
      const error = await writer.write([twin, bad]).written.catch((thrown: unknown) => thrown);
      expect(isRowFault(error)).toBe(true);
      expect(await stored(twin)).toBeUndefined();
      expect(await writer.write([twin]).written).toEqual(new Set([twin.id]));
    }
  });

  test('a new evidence key signs from the next group on once it is active', async () => {
    let now = Date.now();
    const writer = open({ clock: () => now });
    const [before, after] = [final(), final()];
    await writer.write([before]).written;
    const { kid, activatesAt } = await broker.keys.rotate('evidence', now);
    now = activatesAt;
    await writer.write([after]).written;
    expect((await stored(before))!.receipt_kid).not.toBe(kid);
    expect((await stored(after))!.receipt_kid).toBe(kid);
  });

  test('close waits for accepted groups', async () => {
    const writer = open();
    const row = final();
    const { accepted, written } = writer.write([row]);
    await accepted;
    await writer.close();
    expect(await written).toEqual(new Set([row.id]));
    expect(await stored(row)).toMatchObject({ state: 'final' });
  });

  test.runIf(kind === 'postgres')('a single row is written in the main thread, if it has a connection', async () => {
    const { appendTo, appendHere } = broker.store;
    const nowhere = { ...appendHere!, url: 'postgres://nobody@127.0.0.1:1/nowhere' } as typeof appendTo;
    const [here, together, there] = [final(), final(), final()];
    const withoutThread = open({ store: { ...broker.store, appendTo: nowhere } });
    expect(await withoutThread.write([here]).written).toEqual(new Set([here.id]));
    const busy = withoutThread.write([here]).written;
    await expect(withoutThread.write([together]).written).rejects.toThrow('ECONNREFUSED');
    expect(await busy).toEqual(new Set());
    const { appendHere: _, ...withoutConnection } = broker.store;
    expect(await open({ store: withoutConnection }).write([there]).written).toEqual(new Set([there.id]));
  });

  test.runIf(kind === 'sqlite')(
    'the groups of a thread that ended fail, and the next group starts another thread',
    async () => {
      const folder = join(newFolder(), 'store');
      const path = join(folder, 'broker.db');
      // An appender that cannot open its store makes its thread end.
      const store = { ...broker.store, appendTo: { dialect: 'sqlite' as const, path } };
      const writer = open({ store });
      const row = final();
      const error = await writer.write([row]).written.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ message: 'The recording thread has ended.', cause: expect.any(Error) });
      expect(isRowFault(error)).toBe(false);
      mkdirSync(folder);
      store.appendTo.path = (broker.store.appendTo as { path: string }).path;
      expect(await writer.write([row]).written).toEqual(new Set([row.id]));
    },
  );
});
