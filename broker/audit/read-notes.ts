/** Notes of reads in flight, by their rows: each is taken back when its row is stored. */
import { join } from 'node:path';
import type { Log } from '../log.ts';
import type { AuditRow } from '../store/audit.ts';
import { noteReads, SLOW_WRITE_MS } from '../store/reads-in-flight.ts';

export type ReadNotes = {
  /** False: the row is too large for a note. A promise where the disk is slow. */
  note(row: AuditRow): boolean | Promise<boolean>;
  takeBack(row: Pick<AuditRow, 'id'>): void;
  /** To be called now and then. */
  tidy(): void;
  /** Lets go of the notes. Those of reads that are not on record yet stay for the next start. */
  close(): void;
};

/** Where the notes of reads in flight lie, in the data folder. */
export const readsFolder = (dataFolder: string): string => join(dataFolder, 'run', 'reads');

/** `folder`: where the notes of all processes lie. `id`: of this one. */
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
