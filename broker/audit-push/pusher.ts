/**
 * Pushes the audit to sinks: one process on a store at a time, by lease; each sink in the order of the log, several sinks concurrently. The
 * cursor moves after the receiver has acknowledged, so that after a crash the same batch is sent again.
 */

import type { Broker } from '../broker.ts';
import type { Format } from '../config-file/audit-sinks.ts';
import { Secret } from '../crypto/secret.ts';
import { type KeptLease, keepLease } from '../lease.ts';
import { MAX_AFTER_MS } from '../notify/post.ts';
import { entriesFrom } from '../receipt-log/log-rows.ts';
import { withTimeout } from '../runtime/waits.ts';
import { purgedUntil } from '../store/audit-purges.ts';
import {
  beginBatch,
  failBatch,
  findSink,
  finishBatch,
  listDueSinks,
  type SinkRef,
  type SinkWithLog,
  shortenBatch,
} from '../store/audit-sinks.ts';
import { batchOf, nextBatch, UnreadableRow } from './batch.ts';
import { makeBatchSlots } from './batch-slots.ts';
import { deliverTo, type Stored } from './kinds.ts';
import { makeRowLimits } from './row-limits.ts';
import type { Batch, Delivered } from './sink.ts';

const LEASE = 'audit push';
const POLL_MS = 1_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** How long a stop waits for batches in flight. */
const STOP_MS = 3_000;

type Needs = Pick<
  Broker,
  'store' | 'vault' | 'clock' | 'log' | 'auditFolder' | 'baseUrl' | 'did' | 'outbound' | 'instanceId' | 'storeOutage'
>;

/** Returns what a delivery to this sink needs. Rejects with SealError when its secret was altered in the store. */
export function deliveringTo(broker: Needs, sink: SinkWithLog): Stored {
  const { organisation_id: organisationId, id, secret } = sink;
  const place = { table: 'audit_sinks', organisationId, rowId: id } as const;
  return {
    sinkId: id,
    name: sink.name,
    organisationId,
    kind: sink.kind,
    format: sink.format as Format,
    settings: sink.settings,
    secret: secret === null ? undefined : new Secret(broker.vault.open(place, secret).toString('utf8')),
    outbound: broker.outbound,
    folder: broker.auditFolder,
    now: broker.clock(),
    idAt: async (index) => (await entriesFrom(broker.store.db, organisationId, index, index + 1))[0]?.id,
  };
}

/** Returns the back-off in whole milliseconds: doubled each time, with jitter. `failures`: including this one. */
const pauseMs = (failures: number): number =>
  Math.ceil(Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 16), MAX_PAUSE_MS) * (0.75 + Math.random() / 4));

export type Pusher = {
  /** Starts no more batches, waits a moment for those in flight, and releases the lease. */
  stop(): Promise<void>;
};

/** Starts the pusher. It does nothing while another process holds the lease. */
export function startPusher(broker: Needs): Pusher {
  const { store, clock, log, storeOutage } = broker;
  const { db } = store;
  /** Sinks with a batch in flight, and the promise of their work. */
  const lanes = new Map<string, Promise<void>>();
  const limits = makeRowLimits();
  const places = makeBatchSlots();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> = Promise.resolve();

  /** A retry time after `until` can only come from a clock that was ahead. */
  const due = () => ({ now: clock(), until: clock() + MAX_AFTER_MS });

  const lease: KeptLease = keepLease(broker, LEASE, () => {});
  const held = () => {
    const fence = stopped ? undefined : lease.fence();
    return fence === undefined ? undefined : { name: LEASE, fence };
  };

  const attempt = async (sink: SinkWithLog, batch: Batch): Promise<Delivered> => {
    try {
      return await deliverTo(deliveringTo(broker, sink), batch);
    } catch (error) {
      log.error({ err: error, sink: sink.id }, 'an audit sink cannot be used; retrying');
      return {
        kind: 'failed',
        why: 'The settings or the secret of the sink cannot be read; see the log of the broker.',
      };
    }
  };

  const isDue = ({ status, next_index, log_size, retry_at }: SinkWithLog) => {
    const { now, until } = due();
    return status === 'active' && next_index < log_size && (retry_at === null || retry_at <= now || retry_at > until);
  };

  const fail = async (
    sink: SinkWithLog,
    { why, afterMs = 0 }: Delivered & { kind: 'failed' },
    by: { name: string; fence: number },
  ): Promise<void> => {
    const now = clock();
    await failBatch(db, sink, { now, why, retryAt: now + Math.max(pauseMs(sink.failures + 1), afterMs) }, by);
    if (sink.failures === 0) log.warn({ sink: sink.id, why }, 'an audit sink does not accept rows; retrying');
  };

  /** Sends one batch. Returns whether the next one may follow. */
  const push = async (ref: SinkRef): Promise<boolean> => {
    // The broker may have stopped, or lost the lease, while this batch waited for a slot.
    if (!held()) return false;
    const sink = await findSink(db, ref);
    if (!sink || !isDue(sink)) return false;
    const found = await nextBatch(broker, sink, limits.of(sink.id)).catch((error) => {
      if (error instanceof UnreadableRow) return error;
      throw error;
    });
    const began = held();
    if (began === undefined) return false;
    if (found instanceof UnreadableRow) {
      await fail(sink, { kind: 'failed', why: found.message }, began);
      return false;
    }
    const { end, lines } = found;
    if (end === sink.next_index) return false;
    const whole = Math.max(sink.next_index, await purgedUntil(db, sink.organisation_id));
    if (lines.filter(({ index }) => index >= whole).length < end - whole)
      log.error({ security: true, sink: sink.id, from: sink.next_index, end }, 'rows of the receipt log are missing');
    if (sink.batch_end === null && !(await beginBatch(db, sink, end, began))) return false;
    const batch = batchOf(sink.id, sink.next_index, end, lines);
    const sentAt = performance.now();
    const delivered = batch ? await attempt(sink, batch) : { kind: 'arrived' as const };
    // Without the lease the result is not stored: the process that has it sends the batch again.
    const ended = lease.fence();
    if (ended === undefined) return false;
    const by = { name: LEASE, fence: ended };
    if (delivered.kind === 'failed') {
      const shorterEnd = lines[Math.ceil(lines.length / 2)]?.index;
      // A single row cannot be split: it is treated like any other failure.
      if (delivered.isTooLarge && lines.length > 1 && shorterEnd !== undefined) {
        log.warn(
          { sink: sink.id, rows: lines.length },
          'an audit sink does not accept a batch of so many rows; halving it',
        );
        limits.refused(sink.id, lines.length);
        return await shortenBatch(db, sink, { end, shorterEnd }, by);
      }
      if (!stopped) await fail(sink, delivered, by);
      return false;
    }
    limits.taken(sink.id, lines.length);
    places.taken(sink.id, performance.now() - sentAt);
    const { rows: rejected = 0, why = null } = delivered.rejected ?? {};
    if (rejected > 0)
      log.warn({ sink: sink.id, rejected }, 'an audit sink rejected some of the rows that were sent to it');
    return await finishBatch(db, sink, { end, now: clock(), rejected, why }, by);
  };

  /** Sends all pending rows of a sink, until a batch fails or nothing is left. */
  const drain = async (ref: SinkRef): Promise<void> => {
    for (let more = true; more; ) {
      const sink = await findSink(db, ref);
      if (!sink || !isDue(sink) || !held()) return;
      more = await places.send(sink, () => push(ref));
    }
  };

  const failed = (error: unknown) => {
    if (!storeOutage.isLasting()) log.error({ err: error }, 'pushing the audit failed; retrying');
  };

  const startDueSinks = async (): Promise<void> => {
    if (!held()) return;
    for (const ref of await listDueSinks(db, due())) {
      if (lanes.has(ref.id)) continue;
      const lane = drain(ref)
        .catch(failed)
        .finally(() => lanes.delete(ref.id));
      lanes.set(ref.id, lane);
    }
  };

  const tick = () => {
    round = startDueSinks()
      .catch(failed)
      .then(() => {
        if (!stopped) timer = setTimeout(tick, POLL_MS);
      });
  };
  tick();

  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await round;
      clearTimeout(timer);
      await withTimeout(Promise.all(lanes.values()), STOP_MS);
      await lease.stop();
    },
  };
}
