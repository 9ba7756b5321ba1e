/**
 * Counters of rate limits, shared by all processes, in Redis or Valkey. Like a store's, the connection goes to an address that the operator has
 * configured, and not through egress.
 */
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { SharedCounter } from '../runtime/window-counts.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_RETRY_MS = 2_000;

/**
 * `url`: `redis://` or `rediss://`, with or without credentials and database number. `prefix`: of all keys, so that several brokers can share a
 * server. Connects on first use, because a command that only opens the store would wait for the connection to close. While the connection
 * is lost, `add` rejects immediately.
 */
export function redisCounter(url: string, prefix: string): SharedCounter {
  const client = new Redis(url, {
    connectionName: 'agent-broker',
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    lazyConnect: true,
    enableOfflineQueue: false,
    // Not retried: a command whose answer was lost may have counted.
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(times * 100, MAX_RETRY_MS),
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
    // No limit here: the caller enforces the limits.
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
  // The cause of a failure is in `lost`; the client reconnects in the background.
  const connected = (): Promise<void> => {
    connecting ??= client.connect().catch(() => {});
    return connecting;
  };
  // Without the error itself as cause: the one for a rejected password contains the password.
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
