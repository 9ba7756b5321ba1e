/**
 * Appends batches to a file of JSON lines: `AUDIT_FOLDER/<organisation id>/<name>.jsonl`. They are synced to disk before the cursor moves. The
 * file's last line determines where to continue, so that a crash neither loses nor duplicates rows; an incomplete last line is truncated.
 * Rows that are requested again go to another file: within a file indexes increase.
 */
import { mkdir, open, readdir, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SettingsOf } from '../config-file/audit-sinks.ts';
import { UNRESPONSIVE } from '../runtime/remote-folder.ts';
import { syncFolderLater } from '../runtime/sync-file.ts';
import type { Batch, Delivered, Delivering, Line, Sink } from './sink.ts';

type File = Delivering<SettingsOf<'file'>>;
type Handle = Awaited<ReturnType<typeof open>>;

const MAX_BYTES = 100 * 1024 ** 2;
const INDEX_DIGITS = 12;
/** Readable for the group, so that a log shipper can read the files. */
const FILE_MODE = 0o640;
const FOLDER_MODE = 0o750;
/** Bytes read from the end of a file to find its last line; doubled until the line is complete. */
const TAIL_BYTES = 64 * 1024;

/** A row in a file. */
type Written = { index: number; id: string };
/** The end of a file: its size up to the last complete line, and that line's row; undefined: the file has no row. */
type Tail = { bytes: number; last: Written | undefined };

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Parses a line in either format; undefined: it is not a row. */
function rowIn(line: string): Written | undefined {
  try {
    const { index, row, metadata } = JSON.parse(line);
    const found = metadata === undefined ? { index, id: row.id } : { index: metadata.sequence, id: metadata.uid };
    return Number.isSafeInteger(found.index) && typeof found.id === 'string' ? found : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the last `length` bytes of a file; `from`: their offset. */
async function endOf(handle: Handle, length: number): Promise<{ bytes: Buffer; from: number }> {
  const { size } = await handle.stat();
  const from = Math.max(0, size - length);
  const bytes = Buffer.alloc(size - from);
  await handle.read(bytes, 0, bytes.length, from);
  return { bytes, from };
}

async function tailOf(handle: Handle): Promise<Tail> {
  for (let length = TAIL_BYTES; ; length *= 2) {
    const { bytes, from } = await endOf(handle, length);
    const end = bytes.lastIndexOf(10);
    // The newline before the last line, or -1 at the beginning of the file.
    const begin = end <= 0 ? -1 : bytes.lastIndexOf(10, end - 1);
    if (from > 0 && begin < 0) continue;
    if (end < 0) return { bytes: 0, last: undefined };
    return { bytes: from + end + 1, last: rowIn(bytes.subarray(begin + 1, end).toString('utf8')) };
  }
}

/** Returns the indexes of a file's last rows, from `first` on. */
async function indexesFrom(path: string, first: number): Promise<Set<number>> {
  return await reading(path, async (handle) => {
    for (let length = TAIL_BYTES; ; length *= 2) {
      const { bytes, from } = await endOf(handle, length);
      // The first line may be incomplete.
      const lines = bytes
        .toString('utf8')
        .split('\n')
        .slice(from > 0 ? 1 : 0);
      const indexes = lines.flatMap((line) => rowIn(line)?.index ?? []);
      const before = indexes.findLastIndex((index) => index < first);
      if (from === 0 || before >= 0) return new Set(indexes.slice(before + 1));
    }
  });
}

async function reading<T>(path: string, read: (handle: Handle) => Promise<T>): Promise<T> {
  const handle = await open(path, 'r');
  try {
    return await read(handle);
  } finally {
    await handle.close();
  }
}

/** Returns the last row of a file; undefined: it has none. */
const lastIn = (path: string): Promise<Written | undefined> =>
  reading(path, async (handle) => (await tailOf(handle)).last);

/**
 * Returns the file that was rotated last (by modification time), which was written to last. Files are named after the index of their last row,
 * but older files may have higher indexes: from before a restore of the store, or before rows were requested again.
 */
async function newestRotated(folder: string, name: string): Promise<string | undefined> {
  const prefix = `${name}.`;
  const rotated = (await readdir(folder)).filter(
    (one) => one.startsWith(prefix) && /^\d{12,}(?:-\d+)?$/.test(one.slice(prefix.length)),
  );
  let newest: { name: string; at: number } | undefined;
  for (const one of rotated.toSorted()) {
    const at = (await stat(join(folder, one)).catch(() => undefined))?.mtimeMs;
    if (at !== undefined && at >= (newest?.at ?? 0)) newest = { name: one, at };
  }
  return newest?.name;
}

/** Renames the file, so that the next write creates a new one; never overwrites an existing file. */
async function rotate(folder: string, name: string, last: number): Promise<void> {
  const to = join(folder, `${name}.${String(last).padStart(INDEX_DIGITS, '0')}`);
  for (let copy = 0; ; copy++) {
    const path = copy === 0 ? to : `${to}-${copy}`;
    if (await stat(path).catch(() => undefined)) continue;
    return await rename(join(folder, name), path);
  }
}

/** Returns the lines of a batch that are missing in a file whose last row is `last`; undefined: earlier rows were requested again. */
async function remainderOf(
  { first, end, lines }: Batch,
  last: number,
  path: string,
): Promise<readonly Line[] | undefined> {
  if (last < first) return lines;
  if (last >= end) return undefined;
  const written = await indexesFrom(path, first);
  const isBegun = lines.every(({ index }) => index > last || written.has(index));
  return isBegun ? lines.filter(({ index }) => index > last) : undefined;
}

async function append({ name, settings, now, idAt }: File, folder: string, batch: Batch): Promise<void> {
  const file = `${name}.jsonl`;
  const path = join(folder, file);
  let handle = await open(path, 'a+', FILE_MODE);
  try {
    let tail = await tailOf(handle);
    const { size, mtimeMs } = await handle.stat();
    if (size > tail.bytes) await handle.truncate(tail.bytes);
    const rotated = tail.last ? undefined : await newestRotated(folder, file);
    const newest = rotated === undefined ? path : join(folder, rotated);
    const last = tail.last ?? (rotated === undefined ? undefined : await lastIn(newest));
    // After a restore of the store other rows have these indexes. A file from before the restore is then rotated.
    const isOurs = last !== undefined && (await idAt(last.index)) === last.id;
    const remainder = isOurs ? await remainderOf(batch, last.index, newest) : undefined;
    const lines = remainder ?? batch.lines;
    const isFull = tail.bytes >= (settings.max_bytes ?? MAX_BYTES) || day(mtimeMs) !== day(now);
    const isDue = tail.last !== undefined && (!remainder || (isFull && lines.length > 0));
    if (isDue && tail.last) {
      await handle.close();
      await rotate(folder, file, tail.last.index);
      handle = await open(path, 'a+', FILE_MODE);
      tail = { bytes: 0, last: undefined };
    }
    await handle.appendFile(lines.map(({ text }) => `${text}\n`).join(''));
    await handle.sync();
    if (tail.bytes === 0) await syncFolderLater(folder);
  } finally {
    await handle.close();
  }
}

const CODES: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full.',
  EDQUOT: 'The quota of the disk is used up.',
  EACCES: 'The broker may not write there.',
  EPERM: 'The broker may not write there.',
  EROFS: 'The file system is read-only.',
};

/** Runs `write` with the folder of the organisation, which is created if necessary. */
async function inFolder(
  { folder, organisationId }: File,
  write: (folder: string) => Promise<void>,
): Promise<Delivered> {
  if (folder === undefined)
    return { kind: 'failed', why: 'This broker writes no files: its operator has to set AUDIT_FOLDER.' };
  const own = join(folder.path, organisationId);
  try {
    const done = await folder.work(async () => {
      await mkdir(own, { recursive: true, mode: FOLDER_MODE });
      await write(own);
    });
    return done === UNRESPONSIVE
      ? { kind: 'failed', why: 'The folder does not respond: a write in AUDIT_FOLDER has not finished.' }
      : { kind: 'arrived' };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { kind: 'failed', why: `The file cannot be written (${code}). ${CODES[code] ?? ''}`.trim() };
  }
}

export const file: Sink<SettingsOf<'file'>> = {
  deliver: (delivering, batch) => inFolder(delivering, (folder) => append(delivering, folder, batch)),
  test: (delivering) =>
    inFolder(delivering, async (folder) => {
      const handle = await open(join(folder, `${delivering.name}.jsonl`), 'a', FILE_MODE);
      await handle.close();
    }),
};
