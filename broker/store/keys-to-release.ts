import { type ClaimedKey, releaseIdempotencyKey } from './idempotency.ts';
import type { Store } from './store.ts';

/** More are released by their age. */
const MOST_KEPT = 10_000;

/** Releases `Idempotency-Key`s of calls that had no effect; what an outage of the store prevented is tried again. */
export type KeysToRelease = {
  /** Rejects when it failed; then the key is kept for `retry`. */
  release(key: ClaimedKey): Promise<void>;
  /** Releases those that are kept. Rejects at the first that fails again. */
  retry(): Promise<void>;
};

export function makeKeysToRelease({ db }: Pick<Store, 'db'>): KeysToRelease {
  const kept = new Set<ClaimedKey>();
  return {
    release: async (key) => {
      try {
        await releaseIdempotencyKey(db, key);
      } catch (error) {
        if (kept.size < MOST_KEPT) kept.add(key);
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
