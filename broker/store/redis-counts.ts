/**
 * Counts of rate limits that all processes share, in Redis or Valkey. The connection is one of a store: to the address that whoever runs
 * the broker has named, and not by the way out.
 */
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { SharedCounter } from '../runtime/window-counts.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MOST_RETRY_MS = 2_000;

/**
 * `url`: `redis://` or `rediss://`, with credentials and the number of a database or without. `prefix`: of all keys, so that several brokers may
 * use one. Connects when it is used first: a command that only opens the store would wait for its end. While the connection is lost, `add` rejects at once.
 */
export function redisCounter(url: string, prefix: string): SharedCounter {
  const client = new Redis(url, {
    connectionName: 'agent-broker',
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    lazyConnect: true,
    enableOfflineQueue: false,
    // A command whose answer was lost may have counted.
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(times * 100, MOST_RETRY_MS),
  });
  let lost: string | undefined;
  client.on('error', (error) => {
    lost = error.message;
  });
  client.on('ready', () => {
    lost = undefined;
  });
  let connecting: Promise<void> | undefined;
  let made: RateLimiterRedis | undefined;
  const limiterOf = (windowMs: number): RateLimiterRedis => {
    // The limits are kept by the caller.
    const points = Number.MAX_SAFE_INTEGER;
    const duration = windowMs / 1000;
    made ??= new RateLimiterRedis({
      storeClient: client,
      keyPrefix: prefix,
      points,
      duration,
      rejectIfRedisNotReady: true,
    });
    return made;
  };
  // Why it failed is in `lost`; it is tried again in the background.
  const connected = (): Promise<void> => {
    connecting ??= client.connect().catch(() => {});
    return connecting;
  };
  // Without the error itself: that of a refused password holds the password.
  const fault = (error: unknown): Error =>
    new Error(`Redis: ${lost ?? (error instanceof Error ? error.message : 'no answer')}`);
  return {
    check: async () => {
      await connected();
      await client.ping().catch((error) => {
        throw fault(error);
      });
    },
    add: async (uses, windowMs) => {
      await connected();
      const limiter = limiterOf(windowMs);
      try {
        const counted = await Promise.all(uses.map(({ key, count }) => limiter.penalty(key, count)));
        return counted.map(({ consumedPoints, msBeforeNext }) => ({ count: consumedPoints, leftMs: msBeforeNext }));
      } catch (error) {
        throw fault(error);
      }
    },
    close: async () => {
      client.disconnect();
    },
  };
}
