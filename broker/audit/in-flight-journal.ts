/**
 * The in-flight read journal, a file beside the database. A read has no side effects, so it needs no durable intent row, which would
 * double the cost of a call. If the process is killed during the read, recovery creates its audit row from the journal. Writing an entry
 * is one write into the page cache: it survives a crash of the process, but not of the machine.
 */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
  write as writeWhereFree,
} from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../log/log.ts';
import type { AuditRow } from '../store/audit.ts';
import { AUDIT_COLUMNS } from '../store/audit-columns.ts';
import { FolderInUse, lockFolder } from '../store/lock.ts';

/** Size of an entry. Larger rows (very many matched rules) are not journaled. The first slot holds the column names, for later versions. */
const SLOT_BYTES = 8 * 1024;
const NOTES = 'notes';
/** When a write took longer, the next writes go to the thread pool, until one is fast again. */
const SLOW_WRITE_MS = 5;
const MEASURED = 3;

export type ReadNotes = {
  /** Adds an entry. False: the row is too large. Returns a promise while the disk is slow. */
  note(row: AuditRow): boolean | Promise<boolean>;
  takeBack(row: Pick<AuditRow, 'id'>): void;
  /** Removes taken-back entries from the file. To be called periodically. */
  tidy(): void;
  /** Closes the journal. Entries whose audit row is not durable yet are kept for recovery on restart. */
  close(): void;
};

/** The folder of the journals in the data folder. */
export const readsFolder = (dataFolder: string): string => join(dataFolder, 'run', 'reads');

/** Wraps the journal: entries are removed by the id of their audit row, when it is stored. `folder`: journals of all processes; `id`: this process. */
export function makeReadNotes(folder: string, id: string, log: Log): ReadNotes {
  const reads = noteReads(folder, id);
  if (reads.writeMs > SLOW_WRITE_MS)
    log.warn(
      { folder, milliseconds: Math.round(reads.writeMs) },
      'the data folder is slow, and every read call waits until a write to it has finished: put it on a local disk',
    );
  const notes = new Map<string, () => void>();
  return {
    note: (row) => {
      const keep = (takeBack: (() => void) | undefined): boolean => {
        if (takeBack) notes.set(row.id, takeBack);
        return takeBack !== undefined;
      };
      const noted = reads.note(row);
      return noted instanceof Promise ? noted.then(keep) : keep(noted);
    },
    takeBack: ({ id }) => {
      notes.get(id)?.();
      notes.delete(id);
    },
    tidy: reads.tidy,
    close: () => reads.close({ keep: notes.size > 0 }),
  };
}

type Undo = (() => void) | undefined;

type ReadsInFlight = {
  /** Duration of the fastest write on opening, in milliseconds. */
  writeMs: number;
  /**
   * Records a read that is about to be sent. Returns the function that removes the entry; undefined when the row is too large.
   * Synchronous while the disk is fast, a promise while it is slow, so that other requests do not wait for the write.
   */
  note(row: AuditRow): Undo | Promise<Undo>;
  /** Overwrites removed entries in the file, where they stay until then. To be called periodically. */
  tidy(): void;
  /** Closes the file, and deletes it unless `keep`: then recovery reads it at the next start. */
  close(options: { keep: boolean }): void;
};

/**
 * Opens the journal of this process (`id`) in `folder`. The process holds an operating system lock on it while it lives, so that other
 * processes on the same folder can detect an orphaned journal.
 */
export function noteReads(folder: string, id: string): ReadsInFlight {
  const own = join(folder, id);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const lock = lockFolder(own);
  // Created after taking the lock: if the file exists, the lock is reliable.
  const file = openSync(join(own, NOTES), 'wx', 0o600);
  const buffer = Buffer.alloc(SLOT_BYTES);
  let lastMs = 0;
  const write = (text: string, slot: number): void => {
    const began = performance.now();
    writeSync(file, buffer, 0, buffer.write(text), slot * SLOT_BYTES);
    lastMs = performance.now() - began;
  };
  /** Writes in the thread pool: a fast write takes 19 µs instead of 2, but the main thread is not blocked. */
  const writeAside = (text: string, slot: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const bytes = Buffer.from(text);
      const began = performance.now();
      underWay++;
      writeWhereFree(file, bytes, 0, bytes.length, slot * SLOT_BYTES, (error) => {
        underWay--;
        lastMs = performance.now() - began;
        if (closed && underWay === 0) end();
        if (error) reject(error);
        else resolve();
      });
    });
  const times = Array.from({ length: MEASURED }, () => {
    write(`${JSON.stringify(AUDIT_COLUMNS)}\n`, 0);
    return lastMs;
  });
  const writeMs = Math.min(...times);
  lastMs = writeMs;
  let underWay = 0;
  let end = (): void => {};
  const free: number[] = [];
  /** For each slot, whether the file has an entry there, removed or not. */
  const filled: boolean[] = [];
  let last = 0;
  let closed = false;
  return {
    writeMs,
    note: (row) => {
      // The file descriptor may have been reused after closing.
      if (closed) throw new Error('The broker is stopping.');
      const slot = free.pop() ?? ++last;
      filled[slot] = true;
      const release = (): void => void free.push(slot);
      const text = `${JSON.stringify(AUDIT_COLUMNS.map((column) => row[column]))}\n`;
      if (Buffer.byteLength(text) > SLOT_BYTES) {
        release();
        return undefined;
      }
      const failed = (error: unknown): never => {
        release();
        throw error;
      };
      if (lastMs > SLOW_WRITE_MS) return writeAside(text, slot).then(() => release, failed);
      try {
        write(text, slot);
      } catch (error) {
        failed(error);
      }
      return release;
    },
    tidy: () => {
      if (closed || last === 0) return;
      if (free.length === last) {
        ftruncateSync(file, SLOT_BYTES);
        free.length = 0;
        filled.length = 0;
        last = 0;
        return;
      }
      // Cleared periodically, not when a call ends: that would add one more write to each call.
      for (const slot of free) {
        if (lastMs > SLOW_WRITE_MS) return;
        if (!filled[slot]) continue;
        write('\n', slot);
        filled[slot] = false;
      }
    },
    close: ({ keep }) => {
      if (closed) return;
      closed = true;
      end = () => {
        closeSync(file);
        lock.release();
        if (!keep) rmSync(own, { recursive: true, force: true });
      };
      if (underWay === 0) end();
    },
  };
}

/** The journal of a dead process. An entry whose row is final in the store was completed. */
export type LeftBehind = { id: string; rows: AuditRow[]; remove(): void; release(): void };

/** The orphaned journals in `folder`, one by one. Each is locked until it is removed or released. */
export function* readsLeftBehind(folder: string): Generator<LeftBehind> {
  for (const id of existsSync(folder) ? readdirSync(folder) : []) {
    const left = join(folder, id);
    if (!existsSync(join(left, NOTES))) continue;
    let lock: { release(): void };
    try {
      lock = lockFolder(left);
    } catch (error) {
      if (error instanceof FolderInUse) continue;
      throw error;
    }
    yield {
      id,
      rows: readNotes(readFileSync(join(left, NOTES))),
      release: () => lock.release(),
      remove: () => {
        lock.release();
        rmSync(left, { recursive: true, force: true });
      },
    };
  }
}

function readNotes(bytes: Buffer): AuditRow[] {
  const lineAt = (slot: number): unknown[] | undefined => {
    const start = slot * SLOT_BYTES;
    // A slot may contain the rest of a longer, older entry after the end of its line.
    const end = bytes.indexOf(0x0a, start);
    return end < 0 ? undefined : parseArray(bytes.toString('utf8', start, end));
  };
  const columns = lineAt(0);
  if (!columns) return [];
  const rows: AuditRow[] = [];
  for (let slot = 1; slot * SLOT_BYTES < bytes.length; slot++) {
    const values = lineAt(slot);
    // An incomplete entry belongs to a read that was not sent yet.
    if (values?.length !== columns.length) continue;
    const noted = new Map(columns.map((column, at) => [column, values[at]]));
    rows.push(Object.fromEntries(AUDIT_COLUMNS.map((column) => [column, noted.get(column) ?? null])) as AuditRow);
  }
  return rows;
}

function parseArray(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
