/** `Idempotency-Key`s in a restored store, which does not know those that were used after the backup. */
import type { Instant } from '../policy/facts.ts';
import { LIFETIME_MS } from './idempotency.ts';

/** Clocks of clients may be ahead by as much as that of an agent which signs its token. */
const AHEAD_MS = 30_000;
/** A UUID of version 7 (RFC 9562 section 5.7) at the end of a key, with its first 48 bits: when it was made, in milliseconds since 1970. */
const UUID_V7 = /(?:^|[^0-9a-f])([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * Why no call with an effect is made for this key, in words for the agent; undefined: its first call is none that was lost. As long as a lost
 * key would be known, only one that says that it was made after the restore is surely new.
 *
 * @param restoredAt when the store was restored, if it ever was
 */
export function unknownKey(restoredAt: Instant | undefined, key: string, now: Instant): string | undefined {
  if (restoredAt === undefined || now >= restoredAt + LIFETIME_MS) return undefined;
  const [, high = '', low = ''] = UUID_V7.exec(key) ?? [];
  if (Number.parseInt(high + low, 16) > restoredAt + AHEAD_MS) return undefined;
  const time = (moment: number) => new Date(moment).toISOString();
  return (
    `This broker was restored from a backup at ${time(restoredAt)}, and does not know which keys were used after that backup: the first call with this ` +
    'Idempotency-Key may have been made. Nothing was sent now; look at the platform before you repeat it. For a call that is new take a UUID of ' +
    `version 7 as the key, made now. Other keys are taken again from ${time(restoredAt + LIFETIME_MS)} on.`
  );
}
