/** Gauges: what a running broker is like at the moment at which somebody asks. */
import { statfs } from 'node:fs/promises';
import { readBuild } from '../build.ts';
import { SINK_KINDS } from '../config-file/audit-sinks.ts';
import { KEY_USES } from '../keys.ts';
import type { Services } from '../services.ts';
import { sinkNumbers } from '../store/audit-sinks.ts';
import { operatorNumbers } from '../store/operator-numbers.ts';
import type { StoreLoad } from '../store/store.ts';
import { addProcessGauges } from '../telemetry/process-gauges.ts';
import { readRarely } from '../telemetry/read-rarely.ts';
import type { Listener } from './listener.ts';

/** Longer than a call takes as a rule; streams may take longer. */
const STALLED_MS = 30_000;

/**
 * Adds them to the metrics of the broker. Of what they read of the store and the disk they know what was so at most 10 s ago. Call what it
 * answers when the broker stops.
 */
export function addGauges(services: Services, listener: Pick<Listener, 'connections'>): () => void {
  const { broker, recorder, budget, changes } = services;
  const { metrics, store, storeClock, storeOutage, keys, config } = broker;
  const { gauge } = metrics;
  const { version, sha } = readBuild();
  metrics.build({ version, commit: sha.slice(0, 12), store: store.dialect });

  gauge('store_up', 'Whether the store answered when it was asked last.', () => (storeOutage.isLasting() ? 0 : 1));
  gauge('audit_failing', 'Whether audit rows cannot be stored: then nothing is sent.', () =>
    recorder.isFailing() ? 1 : 0,
  );
  gauge('audit_rows_waiting', 'Audit rows that wait to be written.', () => recorder.backlog().waiting);
  gauge('audit_rows_late', 'Outcomes of calls that could not be stored yet.', () => recorder.backlog().late);
  gauge(
    'clock_offset_seconds',
    'How far the clock of this machine is ahead of that of the store.',
    () => storeClock.offsetMs() / 1000,
  );
  gauge('clock_in_doubt', 'Whether the clock is so far off that nothing is expired or deleted.', () =>
    storeClock.problem() === undefined ? 0 : 1,
  );
  gauge('calls_in_progress', 'Calls that are at a platform now.', () => budget.held.calls);
  gauge('answer_bytes_held', 'Bytes of answers in memory, or not yet taken by whoever asked.', () => budget.held.bytes);
  gauge('waiting_requests', 'Requests that wait for news: long polls and event streams.', changes.watchers);
  gauge('http_connections', 'Connections of clients that are open.', listener.connections);
  gauge(
    'key_age_seconds',
    'For how long the key that signs now has been signing.',
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
  gauge('data_folder_free_bytes', 'Room on the disk of the data folder.', async () => {
    const found = await disk();
    return found && found.bavail * found.bsize;
  });
  gauge('data_folder_size_bytes', 'The disk of the data folder, used or not.', async () => {
    const found = await disk();
    return found && found.blocks * found.bsize;
  });
  addStoreLoad(services, store.load());

  const numbers = readRarely(async () => {
    const now = storeClock.now();
    return { now, ...(await operatorNumbers(store.db, { now, stalledBefore: now - STALLED_MS })) };
  });
  gauge('approvals_pending', 'Calls that wait for a person.', async () => (await numbers())?.pending);
  gauge('approvals_oldest_seconds', 'For how long the first of them has been waiting; 0 when none does.', async () => {
    const found = await numbers();
    return found && (found.oldestPending === undefined ? 0 : (found.now - found.oldestPending) / 1000);
  });
  gauge('breakers_open', 'Breakers of agents that are open.', async () => (await numbers())?.openBreakers);
  gauge('intents_stalled', 'Calls that have been in flight for more than 30 s, of all processes.', async () => {
    return (await numbers())?.stalledIntents;
  });
  gauge('log_rows_pending', 'Audit rows without a place in their receipt log, 10,000 at most.', async () => {
    return (await numbers())?.unlogged;
  });
  gauge(
    'log_oldest_pending_seconds',
    'For how long the first of them has been waiting; 0 when none does.',
    async () => {
      const found = await numbers();
      return found && (found.oldestUnlogged === undefined ? 0 : (found.now - found.oldestUnlogged) / 1000);
    },
  );
  gauge(
    'log_oldest_unsigned_seconds',
    'Of rows that no checkpoint of their receipt log covers: since when the first tile with one grows no more; 0 when all are covered.',
    async () => {
      const found = await numbers();
      return found && (found.oldestUnsigned === undefined ? 0 : (found.now - found.oldestUnsigned) / 1000);
    },
  );
  gauge(
    'last_backup_timestamp_seconds',
    'When `agent-broker backup` made the last backup of the store; NaN when it made none.',
    async () => {
      const at = (await numbers())?.lastBackup;
      return at && at / 1000;
    },
  );
  gauge('notices_waiting', 'Notices that nobody was told of yet.', async () => (await numbers())?.notices);
  const sinks = readRarely(() => sinkNumbers(store.db));
  const bySinkKind = async (pick: (numbers: { behind: number; failing: number }) => number) => {
    const found = await sinks();
    const none = SINK_KINDS.map((kind) => [kind, 0] as const);
    return found && new Map([...none, ...found.map((one) => [one.kind, pick(one)] as const)]);
  };
  gauge(
    'audit_sink_rows_behind',
    'Rows that the audit sink of a kind that is furthest behind has not acknowledged; of those that are not paused.',
    () => bySinkKind(({ behind }) => behind),
    'kind',
  );
  gauge(
    'audit_sinks_failing',
    'Audit sinks that do not take rows now.',
    () => bySinkKind(({ failing }) => failing),
    'kind',
  );
  return metrics.instruments ? addProcessGauges(metrics.instruments) : () => {};
}

/** `load`: as it is now, of a store of that kind. */
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
  gauge('postgres', 'pool_connections', 'Connections to PostgreSQL that are open.', ({ connections }) => connections);
  gauge('postgres', 'pool_connections_in_use', 'Of these, how many are in use.', ({ inUse }) => inUse);
  gauge('postgres', 'pool_waiting', 'Statements that wait for a connection.', ({ waiting }) => waiting);
  gauge('postgres', 'pool_connections_most', 'How many may be open.', ({ most }) => most);
  gauge('sqlite', 'sqlite_bytes', 'Size of the database.', ({ bytes }) => bytes);
  gauge('sqlite', 'sqlite_log_bytes', 'Size of its write-ahead log.', ({ logBytes }) => logBytes);
}
