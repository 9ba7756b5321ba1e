/**
 * Tokens that a platform refused though they had just been issued. One refusal says that the platform does not allow this
 * call; only more of them say that the credential is refused.
 */
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';

export type FreshRefusals = {
  /** Notes a refusal. True: the credential is refused, not only this endpoint. */
  note(connectionId: string, endpoint: string, now: Instant): boolean;
  /** The platform took the credential. */
  forget(connectionId: string): void;
};

/** One endpoint that is refused for so long, and nothing else that works meanwhile, counts as the credential being refused. */
const LONG_MS = 60_000;
const KEPT = 1_000;

export function freshRefusals(): FreshRefusals {
  const first = recentlyUsed<{ endpoint: string; at: Instant }>(KEPT);
  return {
    note: (connectionId, endpoint, now) => {
      const found = first.get(connectionId);
      if (found) return found.endpoint !== endpoint || Math.abs(now - found.at) >= LONG_MS;
      first.set(connectionId, { endpoint, at: now });
      return false;
    },
    forget: (connectionId) => {
      if (first.size > 0) first.delete(connectionId);
    },
  };
}
