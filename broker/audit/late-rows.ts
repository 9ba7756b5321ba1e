/** Deferred audit writes: outcomes that could not be stored in time, and are retried until the store is available. */
import type { Log } from '../log/log.ts';
import { watchOutage } from '../outage.ts';
import { withTimeout } from '../runtime/waits.ts';
import type { AuditRow } from '../store/audit.ts';

export type LateRows<State extends { row: AuditRow }> = {
  keep(state: State): void;
  /** Number of deferred rows. */
  kept(): number;
  /** Retries deferred rows in order. Returns how many are still pending. */
  retry(): Promise<number>;
  /** Reports that a row could not be stored. */
  failed(error: unknown): void;
  worked(): void;
  isFailing(): boolean;
  /** Retries, and rejects while rows cannot be stored: no call is made whose outcome could not be recorded. */
  refuseWhileFailing(): Promise<void>;
};

/** Limit of deferred rows. Outcomes beyond it are dropped; recovery after a restart closes their intents as unknown. */
const MAX_LATE = 10_000;
/** Timeout in milliseconds of a call that waits for deferred rows to be stored. */
const TURN_MS = 1_000;

/**
 * @param store resolves with whether the row is stored as given; rejects when the store cannot write it now
 * @param isHopeless whether a retry would fail with the same error, such as for an invalid row
 */
export function makeLateRows<State extends { row: AuditRow }>(
  log: Log,
  store: (state: State) => Promise<boolean>,
  isHopeless: (error: unknown) => boolean,
): LateRows<State> {
  const late: State[] = [];
  const outage = watchOutage(log, {
    failed: 'audit rows cannot be stored; no calls are sent until they can be stored again',
    worked: 'audit rows are stored again',
  });
  let retrying: Promise<number> | undefined;

  const storeLate = async (): Promise<number> => {
    for (let kept = late.shift(); kept; kept = late.shift()) {
      const auditId = kept.row.id;
      try {
        const stands = await store(kept);
        if (!stands)
          log.warn(
            { auditId },
            'late outcome dropped: another process has finalised the audit row, or taken over its call',
          );
      } catch (error) {
        if (!isHopeless(error)) {
          late.unshift(kept);
          return late.length;
        }
        log.error({ err: error, auditId }, 'outcome cannot be stored: recovery after a restart closes it as unknown');
      }
    }
    // Nothing is deferred any more: the next row will show whether the store accepts rows.
    outage.worked();
    return 0;
  };
  const retry = (): Promise<number> => {
    retrying ??= storeLate().finally(() => {
      retrying = undefined;
    });
    return retrying;
  };

  return {
    keep: (state) => {
      const { row } = state;
      if (late.length < MAX_LATE) late.push(state);
      // Rows of calls that were refused during the outage (nothing was sent) are dropped beyond the limit without a log line.
      else if (row.reason !== 'audit_unavailable')
        log.error(
          { auditId: row.id },
          'too many deferred outcomes: recovery after a restart closes this one as unknown',
        );
    },
    kept: () => late.length,
    retry,
    failed: outage.failed,
    worked: outage.worked,
    isFailing: outage.isLasting,
    refuseWhileFailing: async () => {
      if (!outage.isLasting()) return;
      await withTimeout(retry(), TURN_MS);
      if (outage.isLasting()) throw new Error('an earlier outcome is not stored yet');
    },
  };
}
