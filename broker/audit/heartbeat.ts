/** The heartbeat that keeps this process registered. Other replicas close the calls of unregistered processes. */
import type { Broker } from '../broker.ts';
import { readBuild } from '../build.ts';
import { heartbeat } from '../store/instances.ts';

const HEARTBEAT_MS = 5_000;
/**
 * No call begins when the last heartbeat is older than this many intervals: after four intervals another replica considers this process
 * dead (`SILENT_ROUNDS`). The difference leaves time for the next heartbeat.
 */
const RECENT_INTERVALS = 2;

export type Heartbeat = {
  /** The interval of heartbeats, in milliseconds. */
  everyMs: number;
  /** Writes a heartbeat, or waits for the one in progress. Rejects when the store cannot write it. */
  beat(): Promise<void>;
  /**
   * Resolves when this process is registered: immediately, or after a new heartbeat when the last one is older than two intervals, because
   * another replica may have unregistered this process since. Rejects when the store cannot write it. To be called before an intent is
   * stored: other replicas close intents of unregistered processes as unknown, even while the call is in flight.
   */
  ensureRegistered(): Promise<void>;
  /** Milliseconds since the last heartbeat was stored; infinite before the first. */
  ageMs(): number;
};

/** Creates the heartbeat. It is written only by `beat` and `ensureRegistered`; there is no timer here. */
export function makeHeartbeat(
  {
    store,
    storeOutage,
    instanceId,
    clock,
    metrics,
  }: Pick<Broker, 'instanceId' | 'clock' | 'metrics' | 'store' | 'storeOutage'>,
  everyMs = HEARTBEAT_MS,
): Heartbeat {
  const { version } = readBuild();
  // When the last stored heartbeat was sent (`sentAt`) and confirmed (`storedAt`): the confirmation may arrive much later.
  let sentAt = Number.NEGATIVE_INFINITY;
  let storedAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    const now = performance.now();
    try {
      await heartbeat(store.db, instanceId, clock(), version);
    } catch (error) {
      storeOutage.failed(error);
      throw error;
    }
    sentAt = now;
    storedAt = performance.now();
    metrics.beat();
    storeOutage.worked();
  };
  // At most one pending heartbeat, in case the store hangs.
  const beat = (): Promise<void> => {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  };

  return {
    everyMs,
    beat,
    ensureRegistered: async () => {
      if (performance.now() - sentAt > RECENT_INTERVALS * everyMs) await beat();
    },
    ageMs: () => performance.now() - storedAt,
  };
}
