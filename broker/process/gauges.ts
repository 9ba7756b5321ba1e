/** Gauges of a running broker, read at each scrape. */
import { statfs } from 'node:fs/promises';
import { readBuild } from '../build.ts';
import { SINK_KINDS } from '../config-file/audit-sinks.ts';
import { KEY_USES } from '../keys.ts';
import { withTimeout } from '../runtime/waits.ts';
import type { Services } from '../services.ts';
import { sinkNumbers } from '../store/audit-sinks.ts';
import { operatorNumbers } from '../store/operator-numbers.ts';
import type { StoreLoad } from '../store/store.ts';
import { addProcessGauges } from '../telemetry/process-gauges.ts';
import type { Listener } from './listener.ts';

/** A call in flight for longer counts as stalled: longer than a call usually takes; streams may take longer. */
const STALLED_MS = 30_000;

/**
 * Adds the gauges to the metrics of the broker. Values from the store and the disk are at most 10 s old. Returns a function to call when the
 * broker stops.
 */
export function addGauges(services: Services, listener: Pick<Listener, 'connections'>): () => void {
  const { broker, recorder, budget, changes } = services;
  const { metrics, store, storeClock, storeOutage, keys, config } = broker;
  const { gauge } = metrics;
  const { version, sha } = readBuild();
  metrics.build({ version, commit: sha.slice(0, 12), store: store.dialect });

  gauge('store_up', '0 while the store is unavailable.', () => (storeOutage.isLasting() ? 0 : 1));
  gauge('audit_failing', '1 while audit rows cannot be stored; no call is sent then.', () =>
    recorder.isFailing() ? 1 : 0,
  );
  gauge('audit_rows_waiting', 'Audit rows waiting to be written.', () => recorder.backlog().waiting);
  gauge(
    'audit_rows_late',
    'Outcomes of calls that could not be stored yet (deferred rows).',
    () => recorder.backlog().late,
  );
  gauge(
    'clock_offset_seconds',
    'Offset of the clock of this machine from that of the store, positive if ahead.',
    () => storeClock.offsetMs() / 1000,
  );
  gauge('clock_in_doubt', '1 while the clock offset is too large, so that nothing is expired or deleted.', () =>
    storeClock.problem() === undefined ? 0 : 1,
  );
  gauge('calls_in_progress', 'Calls currently sent to a platform.', () => budget.held.calls);
  gauge(
    'answer_bytes_held',
    'Bytes of the bodies of calls in flight, and of answers in memory or not yet read by the client.',
    () => budget.held.bytes,
  );
  gauge('waiting_requests', 'Open long polls and event streams.', changes.watchers);
  gauge('http_connections', 'Open client connections.', listener.connections);
  gauge(
    'key_age_seconds',
    'Age of the current signing key.',
    () => {
      const now = storeClock.now();
      return new Map(
        KEY_USES.map((use) => {
          const { kid } = keys.signer(use, now);
          const entry = keys.set(use).entries.find((one) => one.kid === kid);
          return [use, (now - (entry?.activatesAt ?? now)) / 1000];
        }),
      );
    },
    'use',
  );

  const disk = readRarely(() => statfs(config.dataFolder));
  gauge('data_folder_free_bytes', 'Free space on the disk of the data folder.', async () => {
    const found = await disk();
    return found && found.bavail * found.bsize;
  });
  gauge('data_folder_size_bytes', 'Total size of the disk of the data folder.', async () => {
    const found = await disk();
    return found && found.blocks * found.bsize;
  });
  addStoreLoad(services, store.load());

  const numbers = readRarely(async () => {
    const now = storeClock.now();
    return { now, ...(await operatorNumbers(store.db, { now, stalledBefore: now - STALLED_MS })) };
  });
  gauge('approvals_pending', 'Held calls.', async () => (await numbers())?.pending);
  gauge('approvals_oldest_seconds', 'Age of the oldest held call; 0 if there is none.', async () => {
    const found = await numbers();
    return found && (found.oldestPending === undefined ? 0 : (found.now - found.oldestPending) / 1000);
  });
  gauge('breakers_open', 'Open breakers of agents.', async () => (await numbers())?.openBreakers);
  gauge('intents_stalled', 'Calls in flight for more than 30 s, of all processes; includes streams.', async () => {
    return (await numbers())?.stalledIntents;
  });
  gauge('log_rows_pending', 'Audit rows not yet added to their receipt log, counted up to 10,000.', async () => {
    return (await numbers())?.unlogged;
  });
  gauge(
    'log_oldest_pending_seconds',
    'Age of the oldest row not yet added to its receipt log; 0 if there is none.',
    async () => {
      const found = await numbers();
      return found && (found.oldestUnlogged === undefined ? 0 : (found.now - found.oldestUnlogged) / 1000);
    },
  );
  gauge(
    'log_oldest_unsigned_seconds',
    'Age of the oldest complete tile of a receipt log with a row that no checkpoint covers; 0 if all are covered.',
    async () => {
      const found = await numbers();
      return found && (found.oldestUnsigned === undefined ? 0 : (found.now - found.oldestUnsigned) / 1000);
    },
  );
  gauge(
    'last_backup_timestamp_seconds',
    'Time of the last `agent-broker backup`, in seconds since the epoch; 0 if there was none.',
    async () => {
      const found = await numbers();
      return found && (found.lastBackup ?? 0) / 1000;
    },
  );
  gauge(
    'notices_waiting',
    'Notices not delivered yet, without those that wait for the end of quiet hours.',
    async () => (await numbers())?.notices,
  );
  const sinks = readRarely(() => sinkNumbers(store.db));
  const bySinkKind = async (pick: (numbers: { behind: number; failing: number }) => number) => {
    const found = await sinks();
    const none = SINK_KINDS.map((kind) => [kind, 0] as const);
    return found && new Map([...none, ...found.map((one) => [one.kind, pick(one)] as const)]);
  };
  gauge(
    'audit_sink_rows_behind',
    'Rows not acknowledged by an audit sink, for the sink of each kind that is furthest behind; without paused sinks.',
    () => bySinkKind(({ behind }) => behind),
    'kind',
  );
  gauge('audit_sinks_failing', 'Audit sinks that currently fail.', () => bySinkKind(({ failing }) => failing), 'kind');
  return metrics.instruments ? addProcessGauges(metrics.instruments) : () => {};
}

/** Adds gauges for the load of a store of this kind. `load`: the present values. */
function addStoreLoad({ broker: { metrics, store } }: Services, load: StoreLoad): void {
  const gauge = <Dialect extends StoreLoad['dialect']>(
    dialect: Dialect,
    name: string,
    help: string,
    read: (load: Extract<StoreLoad, { dialect: Dialect }>) => number,
  ): void => {
    if (load.dialect !== dialect) return;
    metrics.gauge(name, help, () => read(store.load() as Extract<StoreLoad, { dialect: Dialect }>));
  };
  gauge('postgres', 'pool_connections', 'Open connections to PostgreSQL.', ({ connections }) => connections);
  gauge('postgres', 'pool_connections_in_use', 'Connections to PostgreSQL in use.', ({ inUse }) => inUse);
  gauge('postgres', 'pool_waiting', 'Statements waiting for a connection.', ({ waiting }) => waiting);
  gauge('postgres', 'pool_connections_most', 'Maximum of open connections to PostgreSQL.', ({ most }) => most);
  gauge('sqlite', 'sqlite_bytes', 'Size of the SQLite database.', ({ bytes }) => bytes);
  gauge('sqlite', 'sqlite_log_bytes', 'Size of the SQLite write-ahead log.', ({ logBytes }) => logBytes);
}

/** Monitoring scrapes every 10 s or less often, with a similar timeout. */
const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 1_000;

/** Reads at most once in 10 seconds; calls in between get the last reading. Undefined when it failed, or takes longer than a second. */
function readRarely<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let latest: Promise<T | undefined> = Promise.resolve(undefined);
  let readAt = Number.NEGATIVE_INFINITY;
  let isReading = false;
  return async () => {
    if (!isReading && performance.now() - readAt >= INTERVAL_MS) {
      isReading = true;
      readAt = performance.now();
      latest = read()
        .catch(() => undefined)
        .finally(() => {
          isReading = false;
        });
    }
    return await withTimeout(latest, TIMEOUT_MS);
  };
}
