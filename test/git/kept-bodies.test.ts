/** Bodies that are buffered until they are complete: in memory, in unlinked files, within limits. */
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Kept, type KeptBody, keptLimits, MAX_IN_MEMORY, makeKeptBodies } from '../../broker/git/kept-bodies.ts';
import { makeSpoolSpace, reserveOf } from '../../broker/git/spool-space.ts';
import { newFolder } from '../world/stores.ts';

const MIB = 1024 * 1024;

/** An agent family, and its organisation. */
const of = (family: string, organisation = 'acme') => ({ family, organisation });

/** Without a reserve. */
const onlyAll = (all: number) => ({ all, reserve: 0, little: 0 });

async function* pieces(bytes: number, size = 64 * 1024): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes; at += size) yield Buffer.alloc(Math.min(size, bytes - at), at % 251);
}

/** A closed file handle: gives access to its class. */
async function anyFile(): Promise<object> {
  const file = await open('/dev/null');
  await file.close();
  return file;
}

async function keptAndReleased(keeping: Promise<Kept>): Promise<void> {
  const found = await keeping;
  expect(found.kind).toBe('kept');
  if (found.kind === 'kept') await found.body.release();
}

async function contentOf(body: KeptBody): Promise<Buffer> {
  const opened = body.open();
  if (Buffer.isBuffer(opened)) return opened;
  const all: Uint8Array[] = [];
  for await (const piece of opened) all.push(piece);
  return Buffer.concat(all);
}

async function wholeOf(bytes: number): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces(bytes)) all.push(piece);
  return Buffer.concat(all);
}

/** Counts the files below a folder, unlinked ones included, that this process has open; undefined: the system does not list them. */
const openFiles = (folder: string): (() => number) | undefined =>
  existsSync('/proc/self/fd')
    ? () =>
        readdirSync('/proc/self/fd').filter((fd) => {
          try {
            return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
          } catch {
            // The descriptor with which the list was read.
            return false;
          }
        }).length
    : undefined;

test.each([0, 1, MAX_IN_MEMORY, MAX_IN_MEMORY + 1, 5 * MIB])(
  '%i bytes are read back unchanged, twice',
  async (bytes) => {
    const folder = join(newFolder(), 'run');
    const kept = makeKeptBodies(folder, keptLimits(MIB));
    const found = await kept.keep(pieces(bytes), bytes, of('a'));
    if (found.kind !== 'kept') return expect(found.kind).toBe('kept');
    const whole = await wholeOf(bytes);
    expect((await contentOf(found.body)).equals(whole)).toBe(true);
    expect((await contentOf(found.body)).equals(whole)).toBe(true);
    const isInFile = bytes > MAX_IN_MEMORY;
    expect(kept.held).toEqual({ memory: isInFile ? 0 : bytes, files: isInFile ? bytes : 0 });
    const countOpen = openFiles(folder);
    if (countOpen) expect(countOpen()).toBe(isInFile ? 1 : 0);
    // A process that dies leaves no file behind.
    if (isInFile) expect(readdirSync(folder)).toEqual([]);
    await found.body.release();
    if (countOpen) expect(countOpen()).toBe(0);
    await found.body.release();
    return expect(kept.held).toEqual({ memory: 0, files: 0 });
  },
);

test.each([1, 999, 100_001, 3 * MIB + 7])('pieces of %i bytes are read back unchanged', async (size) => {
  const kept = makeKeptBodies(join(newFolder(), 'run'), { memory: 0, files: onlyAll(8 * MIB), filesOfFamily: 8 * MIB });
  const bytes = size === 1 ? 5_000 : 7 * MIB + 3;
  const found = await kept.keep(pieces(bytes, size), 8 * MIB, of('a'));
  if (found.kind !== 'kept') return expect(found.kind).toBe('kept');
  const went: Buffer[] = [];
  for await (const piece of pieces(bytes, size)) went.push(piece);
  expect((await contentOf(found.body)).equals(Buffer.concat(went))).toBe(true);
  // A reader that stops early blocks nothing.
  for await (const piece of found.body.open() as AsyncIterable<Uint8Array>) {
    expect(piece.length).toBeGreaterThan(0);
    break;
  }
  await found.body.release();
  return expect(kept.held).toEqual({ memory: 0, files: 0 });
});

test.each(['ENOSPC', 'EDQUOT', 'EIO'])('a disk failure with %s leaves no bytes counted', async (code) => {
  const kept = makeKeptBodies(join(newFolder(), 'run'), keptLimits(MIB));
  const open = vi.spyOn(Object.getPrototypeOf(await anyFile()), 'writeFile');
  open.mockRejectedValue(Object.assign(new Error('it failed'), { code }));
  try {
    const keeping = kept.keep(pieces(5 * MIB), 10 * MIB, of('a'));
    // A full disk is not a bug of the broker; another error is.
    if (code === 'EIO') await expect(keeping).rejects.toThrow('it failed');
    else expect(await keeping).toEqual({ kind: 'no_room' });
  } finally {
    open.mockRestore();
  }
  expect(kept.held).toEqual({ memory: 0, files: 0 });
});

test('on a disk with less free space than the limits, a reserve stays free, and a family gets half of the rest', async () => {
  const disk = { size: 400 * MIB, free: 110 * MIB };
  let looks = 0;
  const folder = join(newFolder(), 'run');
  const room = makeSpoolSpace(folder, async () => {
    looks++;
    return { ...disk };
  });
  const clock = vi.spyOn(performance, 'now');
  clock.mockReturnValue(0);
  onTestFinished(() => clock.mockRestore());
  const kept = makeKeptBodies(folder, keptLimits(MIB), room);
  // A quarter stays free, so 10 MiB can be filled.
  const first = await kept.keep(pieces(5 * MIB), 64 * MIB, of('a'));
  expect(await kept.keep(pieces(2 * MIB), 64 * MIB, of('a'))).toEqual({ kind: 'no_room' });
  const second = await kept.keep(pieces(3 * MIB), 64 * MIB, of('b'));
  expect(await kept.keep(pieces(2 * MIB), 64 * MIB, of('c'))).toEqual({ kind: 'no_room' });
  expect(kept.held.files).toBe(8 * MIB);
  // A fifth of that is left to organisations that use little.
  await keptAndReleased(kept.keep(pieces(2 * MIB), 64 * MIB, of('d', 'other')));
  expect(looks).toBe(1);
  // Bodies stored already count as used.
  disk.free -= 8 * MIB;
  clock.mockReturnValue(1_000);
  expect(await kept.keep(pieces(3 * MIB), 64 * MIB, of('c'))).toEqual({ kind: 'no_room' });
  expect(looks).toBe(2);
  // Other files fill the disk: short bodies, which stay in memory, still pass.
  disk.free = 0;
  clock.mockReturnValue(2_000);
  expect(await kept.keep(pieces(2 * MIB), 64 * MIB, of('d'))).toEqual({ kind: 'no_room' });
  await keptAndReleased(kept.keep(pieces(1_000), 64 * MIB, of('d')));
  for (const found of [first, second]) if (found.kind === 'kept') await found.body.release();
  expect(kept.held).toEqual({ memory: 0, files: 0 });
});

test('64 MiB stay free on a small disk; a disk of unknown size sets no limit', async () => {
  const [quarter, least] = [reserveOf(1024 * MIB), reserveOf(100 * MIB)];
  expect([quarter, least]).toEqual([256 * MIB, 64 * MIB]);
  const folder = newFolder();
  expect(await makeSpoolSpace(folder, async () => undefined)(() => 0)).toBe(Number.POSITIVE_INFINITY);
  expect(await makeSpoolSpace(folder)(() => 0)).toBeLessThan(Number.POSITIVE_INFINITY);
});

test('a body that is too large is discarded, and so is one whose sender disconnects', async () => {
  const kept = makeKeptBodies(join(newFolder(), 'run'), keptLimits(MIB));
  expect(await kept.keep(pieces(3 * MIB), 2 * MIB, of('a'))).toEqual({ kind: 'too_large' });
  async function* cut() {
    yield* pieces(2 * MIB);
    throw new Error('left');
  }
  await expect(kept.keep(cut(), 10 * MIB, of('a'))).rejects.toThrow('left');
  expect(kept.held).toEqual({ memory: 0, files: 0 });
});

test('the total is limited: short bodies go to files too, and then there is no room', async () => {
  const kept = makeKeptBodies(join(newFolder(), 'run'), {
    memory: MIB,
    files: onlyAll(4 * MIB),
    filesOfFamily: 4 * MIB,
  });
  const first = await kept.keep(pieces(MIB), 10 * MIB, of('a'));
  const second = await kept.keep(pieces(MIB), 10 * MIB, of('a'));
  expect(kept.held).toEqual({ memory: MIB, files: MIB });
  expect(await kept.keep(pieces(4 * MIB), 10 * MIB, of('b'))).toEqual({ kind: 'no_room' });
  for (const found of [first, second]) if (found.kind === 'kept') await found.body.release();
  expect(kept.held).toEqual({ memory: 0, files: 0 });
  await keptAndReleased(kept.keep(pieces(4 * MIB), 10 * MIB, of('b')));
});

test('one family leaves room for the others', async () => {
  const kept = makeKeptBodies(join(newFolder(), 'run'), { memory: 0, files: onlyAll(4 * MIB), filesOfFamily: 2 * MIB });
  const first = await kept.keep(pieces(2 * MIB), 10 * MIB, of('a'));
  expect(await kept.keep(pieces(MIB), 10 * MIB, of('a'))).toEqual({ kind: 'no_room' });
  const other = await kept.keep(pieces(2 * MIB), 10 * MIB, of('b'));
  for (const found of [first, other]) if (found.kind === 'kept') await found.body.release();
  await keptAndReleased(kept.keep(pieces(2 * MIB), 10 * MIB, of('a')));
});

test('one organisation leaves room for the others, and uses all of it when it is alone', async () => {
  const files = { all: 4 * MIB, reserve: 2 * MIB, little: 2 * MIB };
  const kept = makeKeptBodies(join(newFolder(), 'run'), { memory: 0, files, filesOfFamily: 2 * MIB });
  const bodies = [
    await kept.keep(pieces(2 * MIB), 10 * MIB, of('a', 'large')),
    await kept.keep(pieces(2 * MIB), 10 * MIB, of('b', 'large')),
  ];
  expect(await kept.keep(pieces(MIB), 10 * MIB, of('c', 'large'))).toEqual({ kind: 'no_room' });
  bodies.push(await kept.keep(pieces(2 * MIB), 10 * MIB, of('d', 'small')));
  expect(bodies.map(({ kind }) => kind)).toEqual(['kept', 'kept', 'kept']);
  // The reserve is used up.
  expect(await kept.keep(pieces(1), 10 * MIB, of('e', 'third'))).toEqual({ kind: 'no_room' });
  for (const found of bodies) if (found.kind === 'kept') await found.body.release();
  expect(kept.held).toEqual({ memory: 0, files: 0 });
});
