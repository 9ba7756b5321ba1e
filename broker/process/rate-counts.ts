/** Opens the shared counters of rate limits. */
import type { Broker } from '../broker.ts';
import { watchOutage } from '../outage.ts';
import { type SharedCounter, type WindowCounts, windowCounts } from '../runtime/window-counts.ts';
import { postgresCounter } from '../store/rate-counts.ts';

/** Window of every rate limit. */
const WINDOW_MS = 60_000;

/**
 * Returns the counts of rate limits: shared by all processes on the store, or local when there is only one, or each is configured to count for itself.
 */
export async function openRateCounts(broker: Pick<Broker, 'store' | 'config' | 'log' | 'did'>): Promise<WindowCounts> {
  const counter = await openCounter(broker);
  if (counter === undefined) return windowCounts(WINDOW_MS);
  const { failed, worked } = watchOutage(broker.log, {
    failed: 'rate limits cannot be counted with the other replicas; each process counts for itself',
    worked: 'rate limits are counted with the other replicas again',
    level: 'warn',
  });
  return windowCounts(WINDOW_MS, { counter, watch: { failed, worked } });
}

async function openCounter({
  store,
  config: { rateLimitUrl },
  did,
}: Pick<Broker, 'store' | 'config' | 'did'>): Promise<SharedCounter | undefined> {
  if (rateLimitUrl === 'none' || store.dialect !== 'postgres') return undefined;
  if (rateLimitUrl === undefined) return postgresCounter(store.db);
  // Loaded only when used.
  const { redisCounter } = await import('../store/redis-counts.ts');
  return redisCounter(rateLimitUrl.reveal(), `agent-broker:${did}`);
}
