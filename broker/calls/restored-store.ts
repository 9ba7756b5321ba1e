/** Calls on a restored store, which lacks the suspensions, revocations and `Idempotency-Key`s after the backup. */
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Instant } from '../policy/facts.ts';
import { LIFETIME_MS } from './idempotency.ts';

/** Tolerated clock skew of clients; the same as for an agent that signs its own tokens. */
const CLOCK_SKEW_MS = 30_000;
/** A version 7 UUID (RFC 9562 section 5.7) at the end of a key; its first 48 bits are its creation time in milliseconds since 1970. */
const UUID_V7 = /(?:^|[^0-9a-f])([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * Returns why no call with an effect is made for this key, worded for the agent; undefined when its first call cannot have been lost. For
 * as long as a lost key would have been kept, only a key with a creation time after the restore is certainly new.
 *
 * @param restoredAt when the store was restored, if it ever was
 */
export function unknownKey(restoredAt: Instant | undefined, key: string, now: Instant): string | undefined {
  if (restoredAt === undefined || now >= restoredAt + LIFETIME_MS) return undefined;
  const [, high = '', low = ''] = UUID_V7.exec(key) ?? [];
  if (Number.parseInt(high + low, 16) > restoredAt + CLOCK_SKEW_MS) return undefined;
  const time = (moment: number) => new Date(moment).toISOString();
  return (
    `This broker was restored from a backup at ${time(restoredAt)}, and does not know which keys were used after that backup: the first call with this ` +
    'Idempotency-Key may have been made. Nothing was sent now; check the platform before you repeat it. For a new call use a UUID of ' +
    `version 7, generated now, as the key. Other keys are accepted again from ${time(restoredAt + LIFETIME_MS)} on.`
  );
}

/** The call was not examined and nothing was recorded. The message is for the caller. */
export class StoreUnreviewed extends Error {
  constructor() {
    super(
      'This broker was restored from a backup, and makes no calls until an admin has reviewed it: suspensions and revocations after the backup are not ' +
        'known. Nothing was sent. Ask an admin to review it under Restored in the console, or with GET /owner/restored; then try again.',
    );
    this.name = 'StoreUnreviewed';
  }
}

/** Throws StoreUnreviewed. Costs no query: the flag is loaded with the authentication. */
export function refuseUnreviewed({ agent }: { agent: Pick<AgentPrincipal['agent'], 'restored'> }): void {
  if (agent.restored !== null) throw new StoreUnreviewed();
}
