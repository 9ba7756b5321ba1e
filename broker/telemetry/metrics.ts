/** What the rooms tell the metrics. A call makes six observations, 0.3 µs each. */
import { addGauge, type Instruments, makeInstruments, type Reading } from './instruments.ts';

/** Milliseconds of a call: all, and what of it was waiting for its audit rows and for the platform. */
export type CallTimes = { total: number; audit: number; upstream: number };

export type Metrics = {
  /** A platform of this id exists. */
  platform(id: string): void;
  /** A final row is stored. */
  recorded(row: { kind: string; result: string | null; reason: string; platform_id: string | null }): void;
  /** A call came to its end. */
  call(times: CallTimes): void;
  /** A platform was asked. `failure`: why that counts as a failure of the platform. */
  upstream(platform: string, ms: number, failure: string | undefined): void;
  /** A group of rows was written, or could not be. */
  auditGroup(rows: number, ms: number, written: boolean): void;
  /** An answer with status 503 or 429. */
  refused(status: 503 | 429, code: string): void;
  beat(): void;
  build(is: { version: string; commit: string; store: string }): void;
  recovery(ms: number): void;
  chore(name: string, ms: number, done: boolean): void;
  /** Adds a gauge, which is read when somebody asks. */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>, label?: string): void;
  /** The instruments; undefined: nothing is measured. */
  instruments: Instruments | undefined;
};

const nothing = (): void => {};

/** Measures nothing. */
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

/** A label with more values than that costs whoever stores the metrics more than it tells. */
const MOST = 100;

const OTHER = 'other';

type PlatformLabels = {
  /** Says that a platform of this id exists. What agents write is no label before that. */
  know(id: string): void;
  /** The label of a platform that may not exist. */
  of(id: string | null | undefined): string;
};

/** Platforms as values of a label. */
function platformLabels(): PlatformLabels {
  const known = new Set<string>();
  return {
    know: (id) => {
      if (known.size < MOST) known.add(id);
    },
    of: (id) => (id && known.has(id) ? id : OTHER),
  };
}
