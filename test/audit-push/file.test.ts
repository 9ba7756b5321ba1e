/** The audit in files: rotation, incomplete last lines, killed processes, failing disks, a restored store. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { file } from '../../broker/audit-push/file.ts';
import type { Batch, Delivering, Line } from '../../broker/audit-push/sink.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { remoteFolder } from '../../broker/runtime/remote-folder.ts';
import { newFolder, ONE_STORE } from '../world/stores.ts';
import { givenWorld, READ } from '../world/world.ts';

const ORGANISATION = '11111111-1111-4111-8111-111111111111';
const outbound = makeOutbound({ allowPrivate: [] });

const lineOf = (index: number, id = `row-${index}`): Line => ({
  index,
  id,
  at: 0,
  reason: 'allowed',
  text: JSON.stringify({ type: 'row', index, row: { id }, filling: 'x'.repeat(100) }),
});
const batchOf = (first: number, end: number, id?: (index: number) => string): Batch => ({
  id: `${first}`,
  first,
  end,
  lines: Array.from({ length: end - first }, (_, at) => lineOf(first + at, id?.(first + at))) as [Line, ...Line[]],
});

const TIMEOUT_MS = 200;

describe('an audit file', () => {
  let folder: string;
  let delivering: Delivering<{ max_bytes?: number }>;
  beforeEach(() => {
    folder = newFolder();
    delivering = {
      sinkId: 's',
      name: 'audit',
      organisationId: ORGANISATION,
      format: 'json',
      settings: {},
      secret: undefined,
      outbound,
      folder: remoteFolder(folder),
      now: Date.now(),
      idAt: async (index) => `row-${index}`,
    };
  });
  /** Makes a write count as hanging after TIMEOUT_MS. On a busy machine one that does not hang may take as long. */
  const impatient = () => {
    delivering = { ...delivering, folder: remoteFolder(folder, TIMEOUT_MS) };
  };
  const own = () => join(folder, ORGANISATION);
  const live = () => join(own(), 'audit.jsonl');
  const deliver = (batch: Batch, more: object = {}) => file.deliver({ ...delivering, ...more }, batch);
  const linesOf = (path: string) => readFileSync(path, 'utf8').split('\n').filter(Boolean);
  /** Indexes over all files, in the order of their rotation. */
  const indexes = () =>
    readdirSync(own())
      .toSorted((a, b) => (a === 'audit.jsonl' ? 1 : b === 'audit.jsonl' ? -1 : a < b ? -1 : 1))
      .flatMap((name) => linesOf(join(own(), name)).map((line) => JSON.parse(line).index));

  test('is created readable for its group, and appended to', async () => {
    expect(await deliver(batchOf(0, 3))).toEqual({ kind: 'arrived' });
    expect(await deliver(batchOf(3, 5))).toEqual({ kind: 'arrived' });
    expect(indexes()).toEqual([0, 1, 2, 3, 4]);
    expect(statSync(live()).mode & 0o777 & ~0o640).toBe(0);
    expect(statSync(own()).mode & 0o777 & ~0o750).toBe(0);
  });

  test('a batch that the file has already, completely or in part, is not written twice', async () => {
    await deliver(batchOf(0, 3));
    await deliver(batchOf(0, 3));
    await deliver(batchOf(0, 5));
    expect(indexes()).toEqual([0, 1, 2, 3, 4]);
  });

  test.each([
    ['in the middle of a line', (text: string) => text.slice(0, -40)],
    ['before its newline', (text: string) => text.slice(0, -1)],
    ['with zeros after it, as after a loss of power', (text: string) => `${text.slice(0, -20)}${'\0'.repeat(300)}`],
    ['in the only line', (text: string) => text.slice(0, 10)],
  ])('a last line that was cut off %s is truncated, and written completely', async (_where, cut) => {
    await deliver(batchOf(0, 3));
    writeFileSync(live(), cut(readFileSync(live(), 'utf8')));
    await deliver(batchOf(0, 4));
    expect(indexes()).toEqual([0, 1, 2, 3]);
    expect(readFileSync(live(), 'utf8')).not.toContain('\0');
  });

  test('is rotated by size and by day, also over many restarts, and no row is lost or duplicated', async () => {
    const max_bytes = 1_024;
    for (let first = 0; first < 60; first += 3) {
      // Each batch is delivered twice, as after a crash before the cursor moved.
      for (let twice = 0; twice < 2; twice++)
        expect(await deliver(batchOf(first, first + 3), { settings: { max_bytes } })).toEqual({ kind: 'arrived' });
      if (first === 30) utimesSync(live(), new Date(), new Date(Date.now() - 86_400_000));
    }
    expect(indexes()).toEqual(Array.from({ length: 60 }, (_, at) => at));
    const renamed = readdirSync(own()).filter((name) => name !== 'audit.jsonl');
    expect(renamed.length).toBeGreaterThan(5);
    for (const name of renamed)
      expect(Number(name.split('.').at(-1))).toBe(JSON.parse(linesOf(join(own(), name)).at(-1)!).index);
  });

  test('killed between renaming and creating the new file: continues after the last row of the renamed file', async () => {
    await deliver(batchOf(0, 10), { settings: { max_bytes: 1_024 } });
    await deliver(batchOf(10, 12), { settings: { max_bytes: 1_024 } });
    rmSync(live());
    await deliver(batchOf(8, 12), { settings: { max_bytes: 1_024 } });
    expect(indexes()).toEqual(Array.from({ length: 12 }, (_, at) => at));
  });

  test.each([
    ['of a store that was restored', (index: number) => `other-${index}`],
    ['of rows that were requested again', (index: number) => `row-${index}`],
  ])(
    'killed between renaming and creating the new file, with an older file of later rows %s: no row is written twice',
    async (_why, id) => {
      const more = { settings: { max_bytes: 1_024 }, idAt: async (index: number) => id(index) };
      await deliver(batchOf(400, 420));
      // A kill left only the first rows of a batch, in a file that is full then.
      await deliver(batchOf(300, 310, id), more);
      await deliver(batchOf(310, 330, id), more);
      expect(linesOf(live()).length).toBe(20);
      renameSync(live(), join(own(), 'audit.jsonl.000000000329'));
      await deliver(batchOf(310, 332, id), more);
      expect(linesOf(live()).map((line) => JSON.parse(line).index)).toEqual([330, 331]);
    },
  );

  test('after a restore of the store: other rows have these indexes, and the earlier file is rotated', async () => {
    await deliver(batchOf(0, 6));
    const idAt = async (index: number) => `other-${index}`;
    await deliver(
      batchOf(4, 7, (index) => `other-${index}`),
      { idAt },
    );
    expect(linesOf(live()).map((line) => JSON.parse(line).row.id)).toEqual(['other-4', 'other-5', 'other-6']);
    expect(linesOf(join(own(), 'audit.jsonl.000000000005')).length).toBe(6);
  });

  test.each([
    ['beyond the batch', 20, 26, [20, 21, 22, 23, 24, 25]],
    ['in the batch, whose first rows the file lacks', 3, 5, [3, 4]],
    ['in the batch, of which rows in the middle are missing', 0, 2, [0, 1, 8, 9]],
  ])(
    'rows that are requested again are written to another file, when the existing one ended %s',
    async (_where, first, end, before) => {
      await deliver(batchOf(first, end));
      if (before.length > end - first) await deliver(batchOf(8, 10));
      expect(indexes()).toEqual(before);
      for (let twice = 0; twice < 2; twice++) expect(await deliver(batchOf(0, 12))).toEqual({ kind: 'arrived' });
      await deliver(batchOf(12, 15));
      expect(linesOf(live()).map((line) => JSON.parse(line).index)).toEqual(Array.from({ length: 15 }, (_, at) => at));
      const renamed = readdirSync(own()).filter((name) => name !== 'audit.jsonl');
      expect(renamed.map((name) => linesOf(join(own(), name)).length)).toEqual([before.length]);
    },
  );

  test('a failed write is reported with a readable reason', async () => {
    expect(await deliver(batchOf(0, 1), { folder: undefined })).toMatchObject({
      kind: 'failed',
      why: expect.stringContaining('AUDIT_FOLDER'),
    });
    mkdirSync(join(own(), 'audit.jsonl'), { recursive: true });
    expect(await deliver(batchOf(0, 1))).toEqual({ kind: 'failed', why: 'The file cannot be written (EISDIR).' });
    expect(await deliver(batchOf(0, 1), { folder: remoteFolder('/dev/full/x') })).toMatchObject({ kind: 'failed' });
  });

  test('while a folder hangs no other write starts there, and a write that succeeds late is not repeated', async () => {
    impatient();
    const held = Promise.withResolvers<string>();
    const isHanging = { ...delivering, idAt: () => held.promise };
    expect(await deliver(batchOf(0, 2))).toEqual({ kind: 'arrived' });
    const slow = await file.deliver(isHanging, batchOf(2, 4));
    expect(slow).toMatchObject({ kind: 'failed', why: expect.stringContaining('does not respond') });
    const began = performance.now();
    expect(await deliver(batchOf(2, 4))).toEqual(slow);
    expect(performance.now() - began).toBeLessThan(TIMEOUT_MS);
    expect(delivering.folder!.isBusy()).toBe(true);
    held.resolve('row-1');
    await expect.poll(() => delivering.folder!.isBusy()).toBe(false);
    expect(await deliver(batchOf(2, 4))).toEqual({ kind: 'arrived' });
    expect(indexes()).toEqual([0, 1, 2, 3]);
  });

  test('a write that timed out while queued is not made later', async () => {
    impatient();
    const held = Promise.withResolvers<string>();
    expect(await deliver(batchOf(0, 1))).toEqual({ kind: 'arrived' });
    const both = [file.deliver({ ...delivering, idAt: () => held.promise }, batchOf(1, 2)), deliver(batchOf(1, 3))];
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['failed', 'failed']);
    held.resolve('row-0');
    await expect.poll(() => delivering.folder!.isBusy()).toBe(false);
    expect(indexes()).toEqual([0, 1]);
  });

  test.runIf(existsSync('/dev/full'))('a full disk is a failure, and no row is lost', async () => {
    mkdirSync(own(), { recursive: true });
    const { symlinkSync, unlinkSync } = await import('node:fs');
    symlinkSync('/dev/full', live());
    expect(await deliver(batchOf(0, 2))).toEqual({
      kind: 'failed',
      why: 'The file cannot be written (ENOSPC). The disk is full.',
    });
    unlinkSync(live());
    expect(await deliver(batchOf(0, 2))).toEqual({ kind: 'arrived' });
    expect(indexes()).toEqual([0, 1]);
  });
});

describe.each(ONE_STORE)('a sink of the kind file on %s', (store) => {
  const folder = newFolder();
  const world = givenWorld(store, { AUDIT_FOLDER: folder });

  test('writes only below AUDIT_FOLDER, in either format, and continues after a restart', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const add = (name: string, more: object) =>
      organisation.ask('POST', '/owner/audit-sinks', { name, kind: 'file', from: 'beginning', ...more });
    for (const name of ['../up', 'a/b', '.hidden', 'a\u0000b', '']) expect((await add(name, {})).status).toBe(400);
    expect((await add('events', { max_bytes: 1_024 })).status).toBe(201);
    expect((await add('lines', { format: 'json' })).status).toBe(201);
    const read = (name: string) => {
      const own = join(folder, organisation.id);
      const names = existsSync(own) ? readdirSync(own).filter((one) => one.startsWith(`${name}.jsonl`)) : [];
      return names.flatMap((one) =>
        readFileSync(join(own, one), 'utf8')
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line)),
      );
    };
    const sequences = () =>
      read('events')
        .map(({ metadata }) => metadata.sequence)
        .toSorted((a, b) => a - b);
    for (let round = 1; round <= 2; round++) {
      for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(200);
      const all = Array.from({ length: 2 + 3 * round }, (_, at) => at);
      await expect.poll(sequences).toEqual(all);
      await expect.poll(() => read('lines').map(({ index }) => index)).toEqual(all);
      if (round === 1) await world.restart();
    }
    expect(readdirSync(folder)).toEqual([organisation.id]);
    expect(readdirSync(join(folder, organisation.id)).length).toBeGreaterThan(2);
  });

  test('gets all rows when its sink is changed from `now` to `beginning`', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const size = async () => (await organisation.ask('GET', '/owner/log')).body.size;
    for (let i = 0; i < 5; i++) await agent.act(READ);
    await expect.poll(size, { timeout: 15_000 }).toBeGreaterThan(3);
    const made = await organisation.ask('POST', '/owner/audit-sinks', {
      name: 'trail',
      kind: 'file',
      format: 'json',
      from: 'now',
    });
    const path = join(folder, organisation.id, 'trail.jsonl');
    const indexes = (): number[] =>
      existsSync(path)
        ? readFileSync(path, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line).index)
        : [];
    await agent.act(READ);
    await expect.poll(indexes, { timeout: 15_000 }).not.toEqual([]);
    expect(indexes()).not.toContain(0);
    const back = await organisation.ask('POST', `/owner/audit-sinks/${made.body.id}/settings`, { from: 'beginning' });
    expect(back.status).toBe(200);
    await expect.poll(() => indexes().slice(0, 5), { timeout: 15_000 }).toEqual([0, 1, 2, 3, 4]);
  });
});
