/**
 * Batches appended to a file of JSON lines: `AUDIT_FOLDER/<organisation id>/<name>.jsonl`. Before the cursor moves they are on the disk. What is
 * in the file already tells where to go on: rows are neither lost nor doubled by a crash, and a line that it cut off is taken away. Rows that are
 * asked for again come in another file: in one file the indexes rise.
 */
import { mkdir, open, readdir, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SettingsOf } from '../config-file/audit-sinks.ts';
import { HANGS } from '../runtime/remote-folder.ts';
import { syncFolderLater } from '../runtime/sync-file.ts';
import type { Batch, Delivered, Delivering, Line, Sink } from './sink.ts';

type File = Delivering<SettingsOf<'file'>>;
type Handle = Awaited<ReturnType<typeof open>>;

const MOST_BYTES = 100 * 1024 ** 2;
const INDEX_DIGITS = 12;
/** Others of the group may read, to ship them on. */
const FILE_MODE = 0o640;
const FOLDER_MODE = 0o750;
/** Of the end of a file, to find its last line; doubled until it is whole. */
const TAIL_BYTES = 64 * 1024;

/** A row that is in a file. */
type Written = { index: number; id: string };
/** The end of a file: its bytes up to the end of the last whole line, and the row that stands there; undefined: there is none. */
type Tail = { bytes: number; last: Written | undefined };

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Reads the row that a line holds, in either format; undefined: it holds none. */
function rowIn(line: string): Written | undefined {
  try {
    const { index, row, metadata } = JSON.parse(line);
    const found = metadata === undefined ? { index, id: row.id } : { index: metadata.sequence, id: metadata.uid };
    return Number.isSafeInteger(found.index) && typeof found.id === 'string' ? found : undefined;
  } catch {
    return undefined;
  }
}

/** The last bytes of a file, and where they begin in it. */
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
    // The newline before the last line, or the beginning of the file.
    const begin = end <= 0 ? -1 : bytes.lastIndexOf(10, end - 1);
    if (from > 0 && begin < 0) continue;
    if (end < 0) return { bytes: 0, last: undefined };
    return { bytes: from + end + 1, last: rowIn(bytes.subarray(begin + 1, end).toString('utf8')) };
  }
}

/** The indexes of the last rows that a file holds, from `first` on. */
async function indexesFrom(path: string, first: number): Promise<Set<number>> {
  return await reading(path, async (handle) => {
    for (let length = TAIL_BYTES; ; length *= 2) {
      const { bytes, from } = await endOf(handle, length);
      // The first line may have been cut.
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

/** The last row that a file holds; undefined: there is none in it. */
const lastIn = (path: string): Promise<Written | undefined> =>
  reading(path, async (handle) => (await tailOf(handle)).last);

/**
 * The file that was renamed last, which is named after the index of its last row: the one that was written to last. Others may have higher indexes: of before a
 * restore of the store, or of before rows were asked for again.
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

/** Renames the file so that another one is begun; what is there under that name stays. */
async function rotate(folder: string, name: string, last: number): Promise<void> {
  const to = join(folder, `${name}.${String(last).padStart(INDEX_DIGITS, '0')}`);
  for (let copy = 0; ; copy++) {
    const path = copy === 0 ? to : `${to}-${copy}`;
    if (await stat(path).catch(() => undefined)) continue;
    return await rename(join(folder, name), path);
  }
}

/** The lines of a batch that a file does not have, which ends with row `last`; undefined: rows from before that one were asked for again. */
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
    // After a restore of the store other rows have these indexes: then the file is of the time before the restore, and is renamed.
    const isOurs = last !== undefined && (await idAt(last.index)) === last.id;
    const remainder = isOurs ? await remainderOf(batch, last.index, newest) : undefined;
    const lines = remainder ?? batch.lines;
    const isFull = tail.bytes >= (settings.max_bytes ?? MOST_BYTES) || day(mtimeMs) !== day(now);
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

/** Runs `write` with the folder of the organisation, which is made. */
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
    return done === HANGS
      ? { kind: 'failed', why: 'The folder does not answer: a write in AUDIT_FOLDER has not come back.' }
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
