/** Retries storing of data that must not be lost. */
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';

const LONGEST_WAIT_MS = 1_000;

/** Losing a rotated refresh token loses the connection, so storing it is retried while the store is unavailable. */
export async function storeSurely(
  broker: Pick<Broker, 'clock' | 'log'>,
  until: Instant,
  work: () => Promise<boolean>,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work();
    } catch (error) {
      const ms = Math.min(150 * attempt, LONGEST_WAIT_MS);
      if (broker.clock() + ms > until) throw error;
      broker.log.warn({ err: error, attempt }, 'could not store refreshed tokens; retrying');
      await pause(ms);
    }
}
