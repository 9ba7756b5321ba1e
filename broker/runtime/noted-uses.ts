/** When stored tokens and keys were used last: noted in memory, and written now and then for many at once, so that no call waits for it. */
import { recentlyUsed } from './recently-used.ts';

/** Of one row it is written no more often. */
const EVERY_MS = 5 * 60_000;
/** Ids in one statement. */
const AT_ONCE = 500;
/** Of so many rows is known when it was written; of others it may be written more often. */
const KEPT = 20_000;

export type NotedUses = {
  /** Notes that the row with this id is used now. */
  note(id: string): void;
  /** Writes what was noted. Throws when the store is away: then it is kept for the next time. */
  write(): Promise<void>;
};

/** `clock`: milliseconds since the epoch. `setLastUsed(ids, at)` writes that these were used at that moment. */
export function notedUses(
  clock: () => number,
  setLastUsed: (ids: readonly string[], at: number) => Promise<void>,
): NotedUses {
  const written = recentlyUsed<number>(KEPT);
  let noted = new Set<string>();
  return {
    note: (id) => {
      if ((written.get(id) ?? Number.NEGATIVE_INFINITY) + EVERY_MS <= clock()) noted.add(id);
    },
    write: async () => {
      const now = clock();
      const ids = [...noted];
      noted = new Set();
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        const some = ids.slice(at, at + AT_ONCE);
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
