/** Tracks when stored tokens and keys were last used: in memory, and written in batches from time to time, so that no call waits for it. */
import { recentlyUsed } from './recently-used.ts';

/** Shortest interval between writes for one row. */
const INTERVAL_MS = 5 * 60_000;
/** Ids per statement. */
const BATCH_SIZE = 500;
/** Number of rows whose last write is remembered; others may be written more often. */
const CACHE_SIZE = 20_000;

export type NotedUses = {
  /** Notes that the row with this id is used now. */
  note(id: string): void;
  /** Writes the noted uses. Throws when the store is unavailable; they are kept and retried. */
  write(): Promise<void>;
};

/** `clock`: milliseconds since the epoch. `setLastUsed(ids, at)` stores that these were used at that time. */
export function notedUses(
  clock: () => number,
  setLastUsed: (ids: readonly string[], at: number) => Promise<void>,
): NotedUses {
  const written = recentlyUsed<number>(CACHE_SIZE);
  let noted = new Set<string>();
  return {
    note: (id) => {
      const last = written.get(id);
      // A clock that was ahead may have been set back since.
      if (last === undefined || Math.abs(clock() - last) >= INTERVAL_MS) noted.add(id);
    },
    write: async () => {
      const now = clock();
      const ids = [...noted];
      noted = new Set();
      for (let at = 0; at < ids.length; at += BATCH_SIZE) {
        const some = ids.slice(at, at + BATCH_SIZE);
        try {
          await setLastUsed(some, now);
        } catch (error) {
          noted = new Set([...noted, ...ids.slice(at)]);
          throw error;
        }
        for (const id of some) written.set(id, now);
      }
    },
  };
}
