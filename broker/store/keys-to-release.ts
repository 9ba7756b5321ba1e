import { type ClaimedKey, releaseIdempotencyKey } from './idempotency.ts';
import type { Store } from './store.ts';

/** Limit of keys kept for `retry`; others are released when they expire. */
const MAX_ENTRIES = 10_000;

/** Releases `Idempotency-Key`s of calls that had no effect; a release that fails during an outage of the store is retried. */
export type KeysToRelease = {
  /** Rejects on failure; the key is then kept for `retry`. */
  release(key: ClaimedKey): Promise<void>;
  /** Releases the kept keys. Rejects at the first that fails again. */
  retry(): Promise<void>;
};

export function makeKeysToRelease({ db }: Pick<Store, 'db'>): KeysToRelease {
  const kept = new Set<ClaimedKey>();
  return {
    release: async (key) => {
      try {
        await releaseIdempotencyKey(db, key);
      } catch (error) {
        if (kept.size < MAX_ENTRIES) kept.add(key);
        throw error;
      }
    },
    retry: async () => {
      for (const key of kept) {
        await releaseIdempotencyKey(db, key);
        kept.delete(key);
      }
    },
  };
}
