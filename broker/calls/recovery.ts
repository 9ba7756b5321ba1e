/** Intents whose process died: they become rows that say so, signed, and are never sent again. */
import type { Broker } from '../broker.ts';
import { findOrphanedIntents } from '../store/audit.ts';
import { beat, forgetInstances } from '../store/instances.ts';
import { AuditUnavailable, type Recorder } from './record.ts';

const BEAT_MS = 5_000;
/** Several beats, so that a slow database or a long pause does not make a living process look dead. */
const DEAD_AFTER_MS = 20_000;
const BATCH = 100;

/**
 * Closes every orphaned intent. Embedded, whatever is not ours is dead (the folder's lock says so); on a shared store a
 * process is dead when it was not seen for 20 s. Answers how many were closed.
 */
export async function closeOrphans(broker: Broker, recorder: Recorder): Promise<number> {
  const now = broker.clock();
  const seenAfter = broker.store.dialect === 'sqlite' ? now + DEAD_AFTER_MS : now - DEAD_AFTER_MS;
  let closed = 0;
  for (;;) {
    const orphans = await findOrphanedIntents(broker.store.db, broker.instanceId, seenAfter, BATCH);
    for (const row of orphans) {
      row.result = 'errored';
      row.reason = 'outcome_unknown';
      row.detail = 'The broker stopped while the call was in flight: it may have been made. It was not repeated.';
      try {
        await recorder.finish(row, undefined, false);
        closed++;
      } catch (error) {
        // Another replica was first, or the store is away; either way the next round looks again.
        if (!(error instanceof AuditUnavailable)) throw error;
      }
    }
    if (orphans.length > 0) broker.log.warn({ count: orphans.length }, 'closed calls whose outcome is unknown');
    if (orphans.length < BATCH) return closed;
  }
}

/** Beats, and looks for orphans, until stopped. The first round is done when the promise resolves. */
export async function startRecovery(broker: Broker, recorder: Recorder): Promise<{ stop(): Promise<void> }> {
  const { db } = broker.store;
  await beat(db, broker.instanceId, broker.clock());
  await closeOrphans(broker, recorder);
  let running: Promise<void> | undefined;
  const round = async () => {
    try {
      const now = broker.clock();
      await beat(db, broker.instanceId, now);
      await recorder.retryLate();
      await closeOrphans(broker, recorder);
      await forgetInstances(db, { unseenSince: now - 100 * DEAD_AFTER_MS });
    } catch (error) {
      broker.log.error({ err: error }, 'recovery round failed; the next one tries again');
    }
  };
  const timer = setInterval(() => {
    running ??= round().finally(() => {
      running = undefined;
    });
  }, BEAT_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
      await forgetInstances(db, { id: broker.instanceId });
    },
  };
}
