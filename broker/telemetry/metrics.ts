/** The interface by which other modules report metrics. A call makes six observations, 0.3 µs each. */
import { SharedUse, withReserve } from '../runtime/shared-limit.ts';
import { addGauge, type Instruments, makeInstruments, type Reading } from './instruments.ts';

/** Milliseconds of a call: in total, waiting for its audit rows, and waiting for the platform. */
export type CallTimes = { total: number; audit: number; upstream: number };

export type Metrics = {
  /** Registers the platform id of an organisation as a label value. */
  platform(id: string, organisation: string): void;
  /** Counts a final row. */
  recorded(row: { kind: string; result: string | null; reason: string; platform_id: string | null }): void;
  /** Records the times of a finished call. */
  call(times: CallTimes): void;
  /** Records a request to a platform. `failure`: why it counts as a failure of the platform. */
  upstream(platform: string, ms: number, failure: string | undefined): void;
  /** Records that a group of rows was written, or could not be. */
  auditGroup(rows: number, ms: number, written: boolean): void;
  /** Counts an answer with status 503 or 429. */
  refused(status: 503 | 429, code: string): void;
  beat(): void;
  build(is: { version: string; commit: string; store: string }): void;
  recovery(ms: number): void;
  chore(name: string, ms: number, done: boolean): void;
  /** Adds a gauge that is read on scrape. */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>, label?: string): void;
  /** The instruments; undefined when nothing is measured. */
  instruments: Instruments | undefined;
};

const nothing = (): void => {};

/** Metrics that do nothing. */
export const NO_METRICS: Metrics = {
  platform: nothing,
  recorded: nothing,
  call: nothing,
  upstream: nothing,
  auditGroup: nothing,
  refused: nothing,
  beat: nothing,
  build: nothing,
  recovery: nothing,
  chore: nothing,
  gauge: nothing,
  instruments: undefined,
};

export function makeMetrics(): Metrics {
  const instruments = makeInstruments();
  const platforms = platformLabels();
  const { calls, callSeconds } = instruments;
  const [total, audit, broker] = ['total', 'audit', 'broker'].map((part) => callSeconds.labels(part));
  const groupRows = instruments.auditGroupRows;
  const groupSeconds = instruments.auditWriteSeconds;
  return {
    platform: platforms.know,
    recorded: ({ kind, result, reason, platform_id }) => {
      if (kind !== 'action' || result === null) return;
      calls.inc({ result, reason, platform: platforms.of(platform_id) });
      if (reason === 'outcome_unknown') instruments.unknownOutcomes.inc();
    },
    call: (times) => {
      total?.observe(times.total / 1000);
      audit?.observe(times.audit / 1000);
      broker?.observe(Math.max(0, times.total - times.audit - times.upstream) / 1000);
    },
    upstream: (id, ms, failure) => {
      const platform = platforms.of(id);
      instruments.upstreamSeconds.observe({ platform }, ms / 1000);
      if (failure !== undefined) instruments.upstreamFailures.inc({ platform, code: failure });
    },
    auditGroup: (rows, ms, written) => {
      if (!written) return instruments.auditFailures.inc();
      groupRows.observe(rows);
      groupSeconds.observe(ms / 1000);
    },
    refused: (status, code) => (status === 503 ? instruments.unavailable : instruments.limited).inc({ code }),
    beat: () => instruments.lastBeat.setToCurrentTime(),
    build: (is) => instruments.build.set(is, 1),
    recovery: (ms) => {
      instruments.lastRecovery.setToCurrentTime();
      instruments.recoverySeconds.observe(ms / 1000);
    },
    chore: (name, ms, done) => {
      const chore = name.replaceAll(/[^a-z0-9]+/gi, '_').toLowerCase();
      instruments.choreSeconds.set({ chore }, ms / 1000);
      if (done) instruments.lastChore.setToCurrentTime({ chore });
      else instruments.choreFailures.inc({ chore });
    },
    gauge: (name, help, read, label) => addGauge(instruments, `agent_broker_${name}`, help, read, label),
    instruments,
  };
}

/**
 * Most values of the platform label: more would cost the metrics store more than they are worth. Beyond that there is a reserve for organisations with
 * few platforms.
 */
const MAX_PLATFORMS = withReserve(100);

const OTHER = 'other';

type PlatformLabels = {
  /** Registers an existing platform of an organisation. Other ids, which agents may invent, are not used as labels. */
  know(id: string, organisation: string): void;
  /** Returns the label of a platform that may not exist. */
  of(id: string | null | undefined): string;
};

/** Platform ids as label values. */
function platformLabels(): PlatformLabels {
  const known = new Set<string>();
  const use = new SharedUse(MAX_PLATFORMS);
  return {
    know: (id, organisation) => {
      if (known.has(id)) return;
      const share = use.of(organisation);
      if (!use.hasRoom(share, 1)) return;
      use.count(share, 1);
      known.add(id);
    },
    of: (id) => (id && known.has(id) ? id : OTHER),
  };
}
