/** When tokens of people were used last: noted in memory, and written now and then for many at once, so that no call waits for it. */
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { setLastUsed } from '../store/person-sessions.ts';

/** Of one token it is written no more often. */
const EVERY_MS = 5 * 60_000;
/** Ids in one statement. */
const AT_ONCE = 500;
/** Of so many tokens is known when it was written; of others it may be written more often. */
const KEPT = 20_000;

export type TokenUses = {
  /** Notes that the tokens of this row are used now. */
  note(id: string): void;
  /** Writes what was noted. Throws when the store is away: then it is kept for the next time. */
  write(): Promise<void>;
};

export function tokenUses({ store, clock }: Pick<Broker, 'store' | 'clock'>): TokenUses {
  const written = recentlyUsed<Instant>(KEPT);
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
          await setLastUsed(store.db, some, now);
        } catch (error) {
          noted = new Set([...noted, ...ids.slice(at)]);
          throw error;
        }
        for (const id of some) written.set(id, now);
      }
    },
  };
}
