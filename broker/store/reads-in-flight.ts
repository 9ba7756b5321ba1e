/**
 * Reads in flight, noted beside the database. A read changes nothing, so it needs no durable intent row, which would double
 * what a call costs; but when the process is killed while the platform has it, its row must still come to be. The note is
 * one write into the page cache: it outlives the process, not the machine.
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
import type { AuditRow } from './audit.ts';
import { AUDIT_COLUMNS } from './audit-columns.ts';
import { FolderInUse, lockFolder } from './lock.ts';

/** A note is larger only when very many rules matched. The first slot names the columns, for a later version to read. */
const SLOT_BYTES = 8 * 1024;
const NOTES = 'notes';
/** Above this a disk is too slow to be waited for in the thread that answers. */
export const SLOW_WRITE_MS = 5;
const MEASURED = 3;

type Undo = (() => void) | undefined;

export type ReadsInFlight = {
  /** How long a write takes, in milliseconds, as measured when it was opened. */
  writeMs: number;
  /**
   * Notes a read that is about to be sent. Answers what takes the note back; undefined when it is too large for one. At once on a
   * quick disk; on a slow one with a promise, so that nobody else waits for the write.
   */
  note(row: AuditRow): Undo | Promise<Undo>;
  /** Wipes the notes that were taken back, if there are no others. To be called now and then. */
  tidy(): void;
  /** Lets go of the file, and removes it unless it is to be kept for the next start. */
  close(options: { keep: boolean }): void;
};

/**
 * Opens the notes of this process (`id`) in `folder`. While the process lives they are locked by the operating system, so
 * that another process on the same folder can tell, however this one ended, whether they are left behind.
 */
export function noteReads(folder: string, id: string): ReadsInFlight {
  const own = join(folder, id);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const lock = lockFolder(own);
  // Made after the lock is held: whoever sees this file can rely on the lock.
  const file = openSync(join(own, NOTES), 'wx', 0o600);
  const buffer = Buffer.alloc(SLOT_BYTES);
  const write = (text: string, slot: number): void => {
    writeSync(file, buffer, 0, buffer.write(text), slot * SLOT_BYTES);
  };
  /** By the thread pool: 19 µs where a quick write takes 2, but nobody else waits for a slow one. */
  const writeAside = (text: string, slot: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const bytes = Buffer.from(text);
      underWay++;
      writeWhereFree(file, bytes, 0, bytes.length, slot * SLOT_BYTES, (error) => {
        underWay--;
        if (closed && underWay === 0) end();
        if (error) reject(error);
        else resolve();
      });
    });
  const times = Array.from({ length: MEASURED }, () => {
    const began = performance.now();
    write(`${JSON.stringify(AUDIT_COLUMNS)}\n`, 0);
    return performance.now() - began;
  });
  const writeMs = Math.min(...times);
  let underWay = 0;
  let end = (): void => {};
  const free: number[] = [];
  let last = 0;
  let closed = false;
  return {
    writeMs,
    note: (row) => {
      // The number of a closed file may be another file's by now.
      if (closed) throw new Error('The broker is stopping.');
      const slot = free.pop() ?? ++last;
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
      if (writeMs > SLOW_WRITE_MS) return writeAside(text, slot).then(() => release, failed);
      try {
        write(text, slot);
      } catch (error) {
        failed(error);
      }
      return release;
    },
    tidy: () => {
      if (closed || last === 0 || free.length < last) return;
      ftruncateSync(file, SLOT_BYTES);
      free.length = 0;
      last = 0;
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

/** What a process that is dead for certain left behind. A row may be final in the store: then its note was taken back. */
export type LeftBehind = { id: string; rows: AuditRow[]; remove(): void; release(): void };

/** The notes in `folder` whose process is dead, one by one. Each is locked until it is removed or released. */
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
    // A slot may hold the rest of a longer, older note after the end of its line.
    const end = bytes.indexOf(0x0a, start);
    return end < 0 ? undefined : parseArray(bytes.toString('utf8', start, end));
  };
  const columns = lineAt(0);
  if (!columns) return [];
  const rows: AuditRow[] = [];
  for (let slot = 1; slot * SLOT_BYTES < bytes.length; slot++) {
    const values = lineAt(slot);
    // A note that was cut off while it was written is of a read that was not sent yet.
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
