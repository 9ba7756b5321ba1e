/**
 * Limits of concurrent batches, so that no receiver holds up those of others: one that answers, but slowly, holds a place for half a minute with each
 * batch.
 */
import { makePlaces, makeSharedPlaces } from '../runtime/places.ts';
import type { SinkWithLog } from '../store/audit-sinks.ts';

/** To sinks that took the last batch, of which an organisation may have twenty. */
const WORKING = { inAll: 6, ofOrganisation: 2 };
/** To those that took it, but not soon. */
const SLOW = { inAll: 4, ofOrganisation: 1 };
/** To those that did not take it. */
const FAILING = { inAll: 6, ofOrganisation: 1 };
/** Files are written one after the other: their folder may hang. */
const FILES = 1;
/** A receiver that takes longer for a batch is slow. */
const SLOW_MS = 2_000;

type Placed = Pick<SinkWithLog, 'id' | 'organisation_id' | 'kind' | 'failures'>;

export type BatchPlaces = {
  /** Runs `work`, which sends a batch to this sink, as soon as there is a place. */
  send<Value>(sink: Placed, work: () => Promise<Value>): Promise<Value>;
  /** The sink took a batch, in so many milliseconds. */
  taken(sinkId: string, milliseconds: number): void;
};

/** Keeps in memory which sinks are slow: a process that starts learns it again. */
export function makeBatchPlaces(): BatchPlaces {
  const working = makeSharedPlaces(WORKING.inAll, WORKING.ofOrganisation);
  const slow = makeSharedPlaces(SLOW.inAll, SLOW.ofOrganisation);
  const failing = makeSharedPlaces(FAILING.inAll, FAILING.ofOrganisation);
  const files = makePlaces(FILES);
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
