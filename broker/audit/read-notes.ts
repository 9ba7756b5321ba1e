/** The in-flight read journal by audit rows: an entry is removed when its row is stored. */
import { join } from 'node:path';
import type { Log } from '../log/log.ts';
import type { AuditRow } from '../store/audit.ts';
import { noteReads, SLOW_WRITE_MS } from '../store/reads-in-flight.ts';

export type ReadNotes = {
  /** Adds an entry. False: the row is too large. A promise where the disk is slow. */
  note(row: AuditRow): boolean | Promise<boolean>;
  takeBack(row: Pick<AuditRow, 'id'>): void;
  /** To be called periodically. */
  tidy(): void;
  /** Closes the journal. Entries whose audit row is not durable yet are kept for recovery on restart. */
  close(): void;
};

/** The folder of the journals in the data folder. */
export const readsFolder = (dataFolder: string): string => join(dataFolder, 'run', 'reads');

/** `folder`: of the journals of all processes. `id`: of this process. */
export function makeReadNotes(folder: string, id: string, log: Log): ReadNotes {
  const reads = noteReads(folder, id);
  if (reads.writeMs > SLOW_WRITE_MS)
    log.warn(
      { folder, milliseconds: Math.round(reads.writeMs) },
      'the data folder is slow, and every read waits for a write to it: put it on a local disk',
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
