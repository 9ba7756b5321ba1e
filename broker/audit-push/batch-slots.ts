/**
 * Limits of concurrent batches, so that no receiver delays those of others: a receiver that answers slowly occupies a slot for half a minute
 * with each batch.
 */
import { makeSemaphore, makeSharedSemaphore } from '../runtime/semaphore.ts';
import type { SinkWithLog } from '../store/audit-sinks.ts';

/** Slots for sinks whose last batch succeeded quickly; an organisation may have twenty sinks. */
const WORKING = { overall: 6, ofOrganisation: 2 };
/** Slots for sinks whose last batch succeeded slowly. */
const SLOW = { overall: 4, ofOrganisation: 1 };
/** Slots for sinks whose last batch failed. */
const FAILING = { overall: 6, ofOrganisation: 1 };
/** Slots for files: one, because the folder of all files may hang. */
const FILES = 1;
/** A receiver that takes longer than this for a batch is slow. */
const SLOW_MS = 2_000;

type Placed = Pick<SinkWithLog, 'id' | 'organisation_id' | 'kind' | 'failures'>;

export type BatchSlots = {
  /** Runs `work`, which sends a batch to this sink, as soon as a slot is free. */
  send<Value>(sink: Placed, work: () => Promise<Value>): Promise<Value>;
  /** Reports that the sink accepted a batch, and after how many milliseconds. */
  taken(sinkId: string, milliseconds: number): void;
};

/** Creates the limits. Which sinks are slow is kept in memory only, and learnt again after a restart. */
export function makeBatchSlots(): BatchSlots {
  const working = makeSharedSemaphore(WORKING.overall, WORKING.ofOrganisation);
  const slow = makeSharedSemaphore(SLOW.overall, SLOW.ofOrganisation);
  const failing = makeSharedSemaphore(FAILING.overall, FAILING.ofOrganisation);
  const files = makeSemaphore(FILES);
  const slowSinks = new Set<string>();
  return {
    send: ({ id, organisation_id, kind, failures }, work) => {
      if (kind === 'file') return files(work);
      if (failures > 0) return failing(organisation_id, work);
      return slowSinks.has(id) ? slow(organisation_id, work) : working(organisation_id, work);
    },
    taken: (sinkId, milliseconds) => {
      if (milliseconds > SLOW_MS) slowSinks.add(sinkId);
      else slowSinks.delete(sinkId);
    },
  };
}
