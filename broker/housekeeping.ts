/** What is done now and then beside the calls: reading keys again, forgetting what is over. */
import type { Broker } from './broker.ts';
import { retireFollowedKeys } from './keys.ts';
import { purgeBreakers } from './store/breakers.ts';
import { purgeIdempotencyKeys } from './store/idempotency.ts';
import { purgeOneTimeTokens } from './store/one-time-tokens.ts';

const EVERY_MS = 60_000;
const DAY_MS = 24 * 3600 * 1000;

/** Runs a round every minute until stopped; a round that fails is logged, and the next one tries again. */
export function startHousekeeping(broker: Broker): { stop(): Promise<void> } {
  const { store, keys, log } = broker;
  let running: Promise<void> | undefined;
  const round = async () => {
    const now = broker.clock();
    try {
      await keys.refresh();
      await retireFollowedKeys(store, keys, now);
      await purgeIdempotencyKeys(store.db, now);
      await purgeBreakers(store.db, now - DAY_MS);
      await purgeOneTimeTokens(store.db, now - 30 * DAY_MS);
    } catch (error) {
      log.error({ err: error }, 'housekeeping failed; the next round tries again');
    }
  };
  const timer = setInterval(() => {
    running ??= round().finally(() => {
      running = undefined;
    });
  }, EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
