/** Sends notices. One process on a store sends at a time, by lease; it is woken by announcements and by polling. */

import type { ApprovalChanges } from '../audit/changes.ts';
import type { Broker } from '../broker.ts';
import { type KeptLease, keepLease } from '../lease.ts';
import { makeSharedSemaphore } from '../runtime/semaphore.ts';
import { withTimeout } from '../runtime/waits.ts';
import { findChannel } from '../store/notice-channels.ts';
import { listDue, listDueChannels } from '../store/notice-deliveries.ts';
import type { NoticeChannelTable, NoticeDeliveryTable } from '../store/tables/notices.ts';
import { backoffMs, type Delivered, deliver } from './deliver.ts';
import { fanOut } from './fan-out.ts';

const LEASE = 'notices';
const POLL_MS = 1_000;
/** Notices that are not announced to other processes are found by polling; a burst of announcements causes one check. */
const BATCH_DELAY_MS = 20;
/** Limits of concurrent messages: per channel, per channel that is slow or fails, per organisation, and in total. */
const PER_CHANNEL = 4;
const PER_SLOW_CHANNEL = 1;
const OF_ORGANISATION = 32;
const IN_ALL = 64;
const SLOW_MS = 2_000;
/** Interval at which a paused channel is compared with the stored one. A little shorter than the polling, so that none is skipped. */
const COMPARE_MS = 900;
const BATCH = 50;
/** How long a stop waits for messages in flight. */
const STOP_MS = 3_000;

export type Sender = {
  /** Whether this process is the one that sends. */
  isSending(): boolean;
  /** Stops sending, waits briefly for messages in flight, and releases the lease. */
  stop(): Promise<void>;
};

/**
 * The state of one channel on which something is being sent. `answers`: its last message was sent, so several may be sent at a time. `pausedAs`: the
 * channel as it was when it was paused; `comparedAt`: when the stored channel was last compared with it.
 */
type Lane = {
  answers: boolean;
  isSlow: boolean;
  pausedUntil: number;
  pausedAs: NoticeChannelTable | undefined;
  comparedAt: number;
  failures: number;
  work: Promise<void> | undefined;
};

type Place = Pick<NoticeDeliveryTable, 'organisation_id' | 'channel_id'>;

/** Whether a channel has another destination or secret than `before`, or has accepted a message since. */
const isMended = (before: NoticeChannelTable, now: NoticeChannelTable): boolean =>
  now.settings !== before.settings ||
  !Buffer.from(now.secret ?? []).equals(before.secret ?? Buffer.alloc(0)) ||
  now.last_ok_at !== before.last_ok_at;

/** Starts the sender. It is idle while another process sends. */
export function startSender(
  broker: Pick<
    Broker,
    | 'config'
    | 'baseUrl'
    | 'instanceId'
    | 'clock'
    | 'log'
    | 'store'
    | 'storeOutage'
    | 'vault'
    | 'outbound'
    | 'publicOutbound'
  >,
  changes: ApprovalChanges,
): Sender {
  const { store, clock, log, storeOutage } = broker;
  const { db } = store;
  const lanes = new Map<string, Lane>();
  /** Limits the messages in flight: an organisation with many channels leaves capacity to the others. */
  const inTurn = makeSharedSemaphore(IN_ALL, OF_ORGANISATION);
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> | undefined;
  let again = false;
  let unsubscribe: (() => void) | undefined;

  const isOn = () => !stopped && lease.fence() !== undefined;

  const isPaused = (lane: Lane) => performance.now() < lane.pausedUntil;

  const note = (lane: Lane, delivered: Delivered) => {
    if (delivered.failed) {
      // Messages in flight that fail together are one failure of the channel.
      if (!isPaused(lane)) lane.failures++;
      lane.answers = false;
      lane.isSlow = true;
      // Each attempt may be for another message, so the channel's own failures determine the backoff.
      const until = performance.now() + Math.max(delivered.pauseMs, backoffMs(lane.failures));
      lane.pausedUntil = Math.max(lane.pausedUntil, until);
    } else if (!isPaused(lane)) {
      // A message that was in flight when another one failed does not end the pause.
      lane.answers = true;
      lane.failures = 0;
      lane.isSlow = delivered.ms > SLOW_MS;
    }
  };

  /** Ends the pause of a channel that has been changed since, or that accepted a test notice: what is due is sent without further delay. */
  const resumeWhereMended = async (place: Place, lane: Lane) => {
    if (!lane.pausedAs) return;
    lane.comparedAt = performance.now();
    const channel = await findChannel(db, place.organisation_id, place.channel_id);
    if (channel && !isMended(lane.pausedAs, channel)) return;
    Object.assign(lane, { pausedUntil: 0, pausedAs: undefined, failures: 0 });
  };

  /** Sends all due deliveries of a channel, some at a time, until one fails or none is left. */
  const drain = async (place: Place, lane: Lane) => {
    while (isOn() && !isPaused(lane)) {
      const channel = await findChannel(db, place.organisation_id, place.channel_id);
      if (!channel) return;
      // One attempt is enough to see whether a channel works: those that do not answer must not take all messages in flight of the organisation.
      const limit = lane.answers ? BATCH : 1;
      const due = await listDue(db, place, { now: clock(), limit });
      if (due.length === 0) return;
      const next = due.values();
      const send = async () => {
        for (const delivery of next) {
          if (!isOn() || isPaused(lane)) return;
          const delivered = await inTurn(place.organisation_id, async () => {
            // Read again: while this message waited, the channel may have been removed, or changed to another destination.
            const current = await findChannel(db, place.organisation_id, place.channel_id);
            return current && (await deliver(broker, current, delivery, isOn));
          });
          if (!delivered) return;
          note(lane, delivered);
          if (lane.isSlow) return;
        }
      };
      await Promise.all(Array.from({ length: lane.isSlow ? PER_SLOW_CHANNEL : PER_CHANNEL }, send));
      if (!isPaused(lane)) continue;
      // Messages of this batch may have been accepted as well; only what happens from now on shows that the channel was mended.
      const last_ok_at = (await findChannel(db, place.organisation_id, place.channel_id))?.last_ok_at ?? null;
      lane.pausedAs = { ...channel, last_ok_at };
    }
  };

  const startLanes = async () => {
    for (const place of await listDueChannels(db, clock())) {
      const lane = lanes.get(place.channel_id) ?? {
        answers: false,
        isSlow: false,
        pausedUntil: 0,
        pausedAs: undefined,
        comparedAt: 0,
        failures: 0,
        work: undefined,
      };
      lanes.set(place.channel_id, lane);
      if (lane.work || (isPaused(lane) && performance.now() < lane.comparedAt + COMPARE_MS)) continue;
      lane.work = (isPaused(lane) ? resumeWhereMended(place, lane) : Promise.resolve())
        .then(() => drain(place, lane))
        .catch(failed)
        .finally(() => {
          lane.work = undefined;
          if (lane.failures === 0) lanes.delete(place.channel_id);
        });
    }
  };

  const failed = (error: unknown) => {
    if (!storeOutage.isLasting()) log.error({ err: error }, 'sending notices failed; retrying');
  };

  const look = async () => {
    do {
      again = false;
      let fanned: Awaited<ReturnType<typeof fanOut>>;
      do {
        const fence = lease.fence();
        if (fence === undefined || stopped) return;
        fanned = await fanOut(broker, { name: LEASE, fence });
        if (fanned === 'lost') return lease.lose();
        await startLanes();
      } while (fanned === 'more');
    } while (again);
  };

  const wake = () => {
    again = true;
    round ??= look()
      .catch(failed)
      .finally(() => {
        round = undefined;
      });
  };

  const poll = () => {
    clearTimeout(timer);
    if (stopped) return;
    if (lease.fence() === undefined) {
      unsubscribe?.();
      unsubscribe = undefined;
    } else wake();
    timer = setTimeout(poll, POLL_MS);
  };

  let soon: NodeJS.Timeout | undefined;
  const wakeSoon = () => {
    soon ??= setTimeout(() => {
      soon = undefined;
      if (isOn()) wake();
    }, BATCH_DELAY_MS);
  };

  const lease: KeptLease = keepLease(broker, LEASE, () => {
    if (stopped) return;
    unsubscribe ??= changes.subscribe(wakeSoon);
    poll();
  });

  return {
    isSending: () => lease.fence() !== undefined,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      clearTimeout(soon);
      unsubscribe?.();
      const onTheWay = [round, ...[...lanes.values()].map(({ work }) => work)];
      await withTimeout(Promise.all(onTheWay), STOP_MS);
      await lease.stop();
    },
  };
}
