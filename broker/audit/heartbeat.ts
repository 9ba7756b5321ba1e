/** The heartbeat of this process, by which it is registered: other replicas close the calls of processes that are not. */
import type { Broker } from '../broker.ts';
import { readBuild } from '../build.ts';
import { heartbeat } from '../store/instances.ts';

const BEAT_MS = 5_000;
/**
 * Nothing is begun so many intervals after the last heartbeat: after four another replica takes this process for dead (`SILENT_ROUNDS`). What
 * is left is time for the next one.
 */
const RECENT_INTERVALS = 2;

export type Heartbeat = {
  /** The interval of heartbeats, in milliseconds. */
  everyMs: number;
  /** Writes one, or waits for the one that is being written. Rejects when the store cannot take it. */
  beat(): Promise<void>;
  /**
   * Before an intent is stored: other replicas close that of a process that is not registered as unknown, also while the call is under way.
   * Resolves when this process is registered: immediately, or after a heartbeat where the last one is older than two intervals, because
   * another replica may have removed it since. Rejects when the store cannot take that one.
   */
  ensureRegistered(): Promise<void>;
  /** Milliseconds since the last one was stored; infinite before the first. */
  ageMs(): number;
};

/** Makes it; it writes nothing by itself. */
export function makeHeartbeat(
  {
    store,
    storeOutage,
    instanceId,
    clock,
    metrics,
  }: Pick<Broker, 'instanceId' | 'clock' | 'metrics' | 'store' | 'storeOutage'>,
  everyMs = BEAT_MS,
): Heartbeat {
  const { version } = readBuild();
  // Of the last one that was stored. When it was sent, because its answer may have come much later.
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
