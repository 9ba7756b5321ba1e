/**
 * Prometheus instruments, in one registry, from which all other exports read. No label identifies the agent, the caller or a repository:
 * those are in the audit.
 */
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';

/** Seconds: from a refusal on SQLite to a platform that takes its full two minutes. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
const ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/**
 * Creates a registry with all instruments that calls and background jobs write to. Gauges that are read on scrape are added by `addGauge`.
 */
export function makeInstruments() {
  const registers = [new Registry()] as const;
  const [registry] = registers;
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `agent_broker_${name}`, help, labelNames, registers: [...registers] });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[] = [],
    buckets = SECONDS,
  ) => new Histogram({ name: `agent_broker_${name}`, help, labelNames, buckets, registers: [...registers] });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name: `agent_broker_${name}`, help, labelNames, registers: [...registers] });
  return {
    registry,
    calls: counter('calls_total', 'Recorded governed calls, by result and reason.', ['result', 'reason', 'platform']),
    callSeconds: histogram(
      'call_duration_seconds',
      'Time of a governed call after authentication: total, waiting for the audit row, and the rest without the platform.',
      ['part'],
    ),
    upstreamSeconds: histogram(
      'upstream_duration_seconds',
      'Time from sending a call to a platform until its answer was read or streamed completely.',
      ['platform'],
    ),
    upstreamFailures: counter('upstream_failures_total', 'Calls without an answer of the platform, or with a 5xx.', [
      'platform',
      'code',
    ]),
    unknownOutcomes: counter('outcome_unknown_total', 'Calls with an unknown outcome, which may have been made.'),
    auditWriteSeconds: histogram('audit_write_duration_seconds', 'Time to store a group of audit rows durably.'),
    auditGroupRows: histogram('audit_group_rows', 'Audit rows per group.', [], ROWS),
    auditFailures: counter('audit_write_failures_total', 'Groups of audit rows that could not be stored.'),
    unavailable: counter('unavailable_answers_total', 'Responses with status 503, by error code.', ['code']),
    limited: counter('limited_answers_total', 'Responses with status 429, by error code.', ['code']),
    build: gauge('build_info', 'Always 1. Labels have version, commit and store.', ['version', 'commit', 'store']),
    lastBeat: gauge('last_beat_timestamp_seconds', 'Time of the last stored heartbeat, in seconds since the epoch.'),
    lastRecovery: gauge(
      'last_recovery_timestamp_seconds',
      'Time when the last sweep for calls of dead processes finished, in seconds since the epoch.',
    ),
    recoverySeconds: histogram('recovery_duration_seconds', 'Duration of a sweep for calls of dead processes.'),
    lastChore: gauge(
      'last_chore_timestamp_seconds',
      'Time when each background job last completed, in seconds since the epoch.',
      ['chore'],
    ),
    choreSeconds: gauge('chore_duration_seconds', 'Duration of the last run of each background job.', ['chore']),
    choreFailures: counter('chore_failures_total', 'Failed runs of background jobs.', ['chore']),
  };
}

export type Instruments = ReturnType<typeof makeInstruments>;

/** A number, or one for each value of a label; undefined while unknown. */
export type Reading = number | ReadonlyMap<string, number> | undefined;

/**
 * Adds a gauge that is read on scrape; an unavailable reading is NaN, or has no samples.
 *
 * @param label the label whose values distinguish the numbers of one reading
 */
export function addGauge(
  { registry }: Pick<Instruments, 'registry'>,
  name: string,
  help: string,
  read: () => Reading | Promise<Reading>,
  label?: string,
): void {
  new Gauge({
    name,
    help,
    labelNames: label === undefined ? [] : [label],
    registers: [registry],
    async collect() {
      const reading = await Promise.resolve()
        .then(read)
        .catch(() => undefined);
      if (label !== undefined) {
        this.reset();
        if (reading instanceof Map) for (const [value, number] of reading) this.set({ [label]: value }, number);
      } else this.set(typeof reading === 'number' ? reading : Number.NaN);
    },
  });
}
