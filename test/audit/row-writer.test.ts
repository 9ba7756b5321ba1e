import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { makeRowWriter } from '../../broker/audit/row-writer.ts';
import type { Broker } from '../../broker/broker.ts';
import { verifyCompact } from '../../broker/crypto/jws.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { isRowFault } from '../../broker/store/row-fault.ts';
import { shared } from '../world/given.ts';
import { auditRow } from '../world/rows.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

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

  test('what is final is hashed and signed, an intent is not, and what was final already is not written', async () => {
    const writer = open();
    // Its process lives: no round of recovery closes it.
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

  test('many groups at once are each written whole', async () => {
    const writer = open();
    const groups = Array.from({ length: 12 }, (_, size) => Array.from({ length: size + 1 }, () => final()));
    const written = await Promise.all(groups.map((rows) => writer.write(rows).written));
    expect(written).toEqual(groups.map((rows) => new Set(rows.map(({ id }) => id))));
  });

  test('the blame for a row that cannot be stored, or cannot even be signed, is the row’s', async () => {
    const writer = open();
    for (const bad of [final({ kind: 'nonsense' as 'action' }), final({ detail: '\ud800' })]) {
      const twin = final();
      const error = await writer.write([twin, bad]).written.catch((thrown: unknown) => thrown);
      expect(isRowFault(error)).toBe(true);
      expect(await stored(twin)).toBeUndefined();
      expect(await writer.write([twin]).written).toEqual(new Set([twin.id]));
    }
  });

  test('a new evidence key signs from the next group on', async () => {
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

  test('a close waits for what was accepted', async () => {
    const writer = open();
    const row = final();
    const { accepted, written } = writer.write([row]);
    await accepted;
    await writer.close();
    expect(await written).toEqual(new Set([row.id]));
    expect(await stored(row)).toMatchObject({ state: 'final' });
  });

  test.runIf(kind === 'postgres')(
    'a row that is alone is written where it came up, if there is a connection',
    async () => {
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
    },
  );

  test.runIf(kind === 'sqlite')(
    'what a thread had that ended has failed, and the next group starts another',
    async () => {
      const folder = join(newFolder(), 'store');
      const path = join(folder, 'broker.db');
      // An appender that cannot open its store ends its thread.
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
