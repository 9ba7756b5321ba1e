/** Closes everything that a process has open, in order. */
import type { Recovery } from '../audit/recovery.ts';
import type { Pusher } from '../audit-push/pusher.ts';
import type { Broker } from '../broker.ts';
import type { Log } from '../log/log.ts';
import type { Sender } from '../notify/sender.ts';
import type { Sequencer } from '../receipt-log/sequencer.ts';
import { withTimeout } from '../runtime/waits.ts';
import type { Services } from '../services.ts';
import type { Store } from '../store/store.ts';
import { nextGeneration } from './generation.ts';
import type { Listener } from './listener.ts';

/** Time for calls that were cut off to be recorded with their outcome, in milliseconds. */
const SETTLE_MS = 5_000;
const ANSWER_MS = 1_000;
/** For all steps together that wait for an unavailable store, each up to the 15 s of a statement: with the grace period less than 20 s. */
const CLOSE_BUDGET_MS = 8_000;

/** What is open, in the order in which it was opened. */
export type Open = {
  store: Store;
  listener?: Listener;
  broker?: Pick<
    Broker,
    'config' | 'outbound' | 'providerOutbound' | 'publicOutbound' | 'rateCounts' | 'storeOutage' | 'tracing'
  >;
  services?: Services;
  unwatch?: () => void;
  recovery?: Recovery;
  housekeeping?: { stop(): Promise<void> };
  accessWatch?: { stop(): Promise<void> };
  sender?: Sender;
  sequencer?: Sequencer;
  pusher?: Pusher;
  local?: { remove(): void };
};

/**
 * Closes first what accepts new work, then what works, then what stores. A failing step does not prevent the next ones. When the store does not
 * answer, all remaining steps together get `CLOSE_BUDGET_MS`.
 *
 * @param graceMs how long work in flight may take
 */
export async function close(open: Open, graceMs: number, log: Log): Promise<void> {
  let until: number | undefined;
  const step = async (what: string, work: () => Promise<void> | void | undefined) => {
    try {
      const working = work();
      await (until === undefined ? working : withTimeout(Promise.resolve(working), until - performance.now()));
    } catch (error) {
      log.error({ err: error }, `${what} did not stop cleanly`);
    }
  };
  const { store, listener, broker, services, unwatch, recovery, housekeeping, accessWatch, sender, sequencer } = open;
  const { pusher, local } = open;
  await step('the run file', () => local?.remove());
  const cutOff = async () => {
    // Replays stop first: with egress closed, an approved call would end without having been sent.
    services?.replays.stop();
    await services?.mcpSessions.end();
    await Promise.all([broker?.outbound, broker?.publicOutbound, broker?.providerOutbound].map((way) => way?.close()));
  };
  await step('waiting agents', () => services?.changes.release());
  await step('the lab', () => services?.lab.close());
  await step('the listener', () => listener?.close({ graceMs, ...(graceMs > 0 && { cutOff }) }));
  if (services && !(await answers(services))) {
    log.error('the store does not answer: the broker stops without it');
    until = performance.now() + CLOSE_BUDGET_MS;
  }
  await step('replays', () => services?.replays.settled(graceMs));
  await step('replays', () => services?.replays.stop());
  await step('notices', () => sender?.stop());
  await step('pushing the audit', () => pusher?.stop());
  await step('sessions at MCP servers', () => services?.mcpSessions.end());
  await step('the way out', () => broker?.outbound.close());
  await step('outbound connections', () => broker?.publicOutbound.close());
  await step('connections to the identity provider', () => broker?.providerOutbound?.close());
  await step('replays', () => services?.replays.settled(SETTLE_MS));
  await step('the recorder', () => services?.recorder.settled(SETTLE_MS));
  await step('housekeeping', () => housekeeping?.stop());
  await step('watching calls in flight', () => accessWatch?.stop());
  await step('recovery', () => recovery?.stop());
  await step('the receipt log', () => sequencer?.stop());
  await step('the recorder', () => services?.recorder.close());
  await step('notifications about held calls', () => services?.changes.close());
  await step('times of last use', () => services?.tokenUses.write());
  await step('last use of static keys', () => services?.staticKeyUses.write());
  await step('last use of workloads', () => services?.workloadUses.write());
  await step('what agents did', () => services?.seenValues.write());
  await step('generation of the store', async () => {
    if (broker && !broker.storeOutage.isLasting()) await nextGeneration(store, broker.config, log);
  });
  await step('counters of rate limits', () => broker?.rateCounts.stop());
  await step('traces', () => broker?.tracing.stop());
  await step('watching the process', () => unwatch?.());
  await step('the store', () => store.close());
}

/** Whether the store accepts a last heartbeat. */
const answers = async ({ heartbeat }: Services): Promise<boolean> =>
  (await withTimeout(
    heartbeat.beat().then(
      () => true,
      () => false,
    ),
    ANSWER_MS,
    false,
  )) === true;
