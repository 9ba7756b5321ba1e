/** Recovery of calls whose process died: their rows are finalised as unknown, and they are never sent again. */

import type { Broker, Uses } from '../broker.ts';
import { type AuditRow, findAuditRow, findOrphanedIntents } from '../store/audit.ts';
import { forgetInstance, listInstances } from '../store/instances.ts';
import type { KeysToRelease } from '../store/keys-to-release.ts';
import { endRefreshClaims } from '../store/oauth-tokens.ts';
import { endIntendedReplay, listStrandedClaims, takeClaim } from '../store/replays.ts';
import { findRestored } from '../store/restored.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { AuditUnavailable } from './audit-unavailable.ts';
import type { ApprovalChanges } from './changes.ts';
import { STOPPED_IN_FLIGHT } from './execution-error.ts';
import type { Heartbeat } from './heartbeat.ts';
import { readsFolder, readsLeftBehind } from './in-flight-journal.ts';
import type { Changing } from './record-change.ts';
import type { Companion, Recorder } from './recorder.ts';
import { closedRow } from './row.ts';
import { releaseStrandedKeys } from './stranded-keys.ts';

/**
 * A process is considered dead after this many consecutive sweeps without a heartbeat: at least 20 s, which tolerates a slow database or
 * a long pause. Counted in sweeps, so that clocks of different machines are not compared.
 */
const SILENT_ROUNDS = 4;
const BATCH = 100;

/** Starts replays in this process. */
type Replays = {
  start(claimed: ApprovalTable, options: { recovered: boolean }): Promise<void>;
  isRunning(id: string): boolean;
};

export type Recovery = {
  /** Starts taking over claimed replays that were not begun. Call it after the governance file was applied. */
  beginReplays(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Sends heartbeats and recovers calls of dead processes, once per heartbeat interval until stopped. Resolves after the first sweep: on
 * SQLite, and with the same data folder, all calls of dead processes are closed by then.
 */
export async function startRecovery(
  services: Changing & { heartbeat: Heartbeat; replays: Replays; keysToRelease: KeysToRelease } & Uses<
      'config' | 'fleetRun' | 'storeClock' | 'metrics' | 'storeOutage'
    >,
): Promise<Recovery> {
  const { broker, recorder, heartbeat } = services;
  const { store, instanceId } = broker;
  const watch = watchInstances(broker);
  const round = async () => {
    const began = performance.now();
    await broker.storeClock.check();
    await heartbeat.beat();
    await recorder.retryLate();
    await closeReads(broker, recorder);
    await watch();
    await closeOrphans(services);
    await releaseKeys(services);
    if (replaying) await takeOverReplays(services);
    await services.keysToRelease.retry();
    broker.metrics.recovery(performance.now() - began);
  };
  let replaying = false;
  await round();
  const joining = broker.fleetRun.settle(heartbeat.everyMs);
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= round()
      .catch((error) => {
        // An outage of the store is already logged.
        if (!broker.storeOutage.isLasting())
          broker.log.error({ err: error }, 'recovery sweep failed; the next one retries');
      })
      .finally(() => {
        running = undefined;
      });
  }, heartbeat.everyMs);
  return {
    beginReplays: async () => {
      replaying = true;
      await takeOverReplays(services);
    },
    stop: async () => {
      replaying = false;
      clearInterval(timer);
      await running;
      await joining.stop();
      await recorder.retryLate();
      await forgetInstance(store.db, instanceId);
    },
  };
}

/** Returns a function that checks the registered processes once and unregisters dead ones. */
function watchInstances({ store, instanceId, log }: Pick<Broker, 'instanceId' | 'log' | 'store'>): () => Promise<void> {
  const seen = new Map<string, { at: number; silent: number }>();
  return async () => {
    const present = (await listInstances(store.db)).filter(({ id }) => id !== instanceId);
    const ids = new Set(present.map(({ id }) => id));
    for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id);
    for (const { id, seen_at: at } of present) {
      const last = seen.get(id);
      const silent = last?.at === at ? last.silent + 1 : 0;
      seen.set(id, { at, silent });
      // Embedded, the folder's lock guarantees that there is no other process.
      if (store.dialect !== 'sqlite' && silent < SILENT_ROUNDS) continue;
      if (await forgetInstance(store.db, id, at)) await endRefreshClaims(store.db, id);
      log.warn({ instance: id }, 'a broker process died; closing its calls in flight');
    }
  };
}

/** Closes the intents of unregistered processes in batches until none is left. Returns how many were closed. */
async function closeOrphans(services: Changing): Promise<number> {
  const { broker } = services;
  let closed = 0;
  for (;;) {
    const orphans = await findOrphanedIntents(broker.store.db, BATCH);
    let now = 0;
    for (const row of orphans) {
      // An intent of this process: it was considered dead, and its next heartbeat registers it again.
      if (row.instance_id === broker.instanceId) continue;
      if (await closeIntent(services, row)) now++;
    }
    closed += now;
    // The rest cannot be closed now (another process, or an outage). The next sweep retries.
    if (orphans.length < BATCH || now === 0) break;
  }
  if (closed > 0) broker.log.warn({ count: closed }, 'closed calls whose outcome is unknown');
  return closed;
}

async function releaseKeys(services: Changing): Promise<void> {
  const count = await releaseStrandedKeys(services);
  if (count > 0) services.broker.log.warn({ count }, 'released Idempotency-Keys of calls that were not begun');
}

/** Closes an intent; for a replay together with its approval, in one transaction. */
async function closeIntent(
  { broker, recorder, changes }: Uses<'clock'> & { changes: ApprovalChanges; recorder: Recorder },
  row: AuditRow,
): Promise<boolean> {
  const { organisation_id, approval_id } = row;
  if (approval_id === null) return await closeUnknown(recorder, row, 'It was not repeated.');
  const ref = { organisation_id, id: approval_id };
  const closed = await closeUnknown(recorder, row, 'It was not repeated.', {
    store: async (tx) => {
      const step = { exec_state: 'unknown' as const, execution_error: STOPPED_IN_FLIGHT };
      if (await endIntendedReplay(tx, ref, row.id, step, broker.clock())) await changes.announce(tx, ref);
      return undefined;
    },
  });
  if (closed) changes.tell(ref);
  return closed;
}

/**
 * Takes over replays that were claimed and not begun: nothing was sent, so they are started under a new claim, in the background.
 * Failed ones are retried in the next sweep.
 */
async function takeOverReplays({
  broker,
  replays,
}: Uses<'instanceId' | 'log' | 'store'> & { replays: Replays }): Promise<void> {
  const { store, instanceId, log } = broker;
  for (const stranded of await listStrandedClaims(store.db, instanceId, BATCH)) {
    if (replays.isRunning(stranded.id)) continue;
    const claimed = await takeClaim(store.db, stranded, instanceId);
    if (!claimed) continue;
    log.warn({ approval: claimed.id }, 'taking over the replay of an approved call that was not begun');
    void replays.start(claimed, { recovered: true });
  }
}

/** Records the journaled reads of dead processes on this data folder, and unregisters those processes. */
async function closeReads(broker: Pick<Broker, 'config' | 'log' | 'store'>, recorder: Recorder): Promise<void> {
  const { store, config, log } = broker;
  for (const left of readsLeftBehind(readsFolder(config.dataFolder))) {
    let kept = false;
    try {
      let closed = 0;
      for (const row of left.rows) {
        if (await findAuditRow(store.db, row.organisation_id, row.id)) continue;
        // A row missing from a restored backup may have been finished, and its receipt returned, before the restore.
        const restored = await findRestored(store.db, row.organisation_id);
        if (restored && row.created_at < restored.at) continue;
        if (await closeUnknown(recorder, row, 'It was a read.')) closed++;
        else kept = true;
      }
      await forgetInstance(store.db, left.id);
      await endRefreshClaims(store.db, left.id);
      if (closed > 0) log.warn({ count: closed }, 'recorded reads whose outcome is unknown');
    } catch (error) {
      left.release();
      throw error;
    }
    if (kept) left.release();
    else left.remove();
  }
}

/** Closes the row as unknown. False: it could not be closed now, or another process closed it. */
async function closeUnknown(
  recorder: Recorder,
  intent: AuditRow,
  what: string,
  companion?: Companion,
): Promise<boolean> {
  const detail = `The broker stopped while the call was in flight: it may have been made. ${what}`;
  const row = closedRow(intent, 'outcome_unknown', detail);
  try {
    await recorder.record({ row, value: undefined, companion });
    return true;
  } catch (error) {
    if (error instanceof AuditUnavailable) return false;
    throw error;
  }
}
