/** Outcomes that could not be stored when they came, and wait until the store is back. */
import type { Log } from '../log.ts';
import type { AuditRow } from '../store/audit.ts';

export type LateRows = {
  keep(row: AuditRow, value?: unknown): void;
  /** Stores as many as can be stored now, the oldest first. Answers how many still wait. */
  retry(): Promise<number>;
};

/** Beyond so many the store is away for good, and a restart closes the rest as unknown. */
const MOST_LATE = 10_000;

/**
 * @param store resolves with whether the row stands as it is; rejects when the store cannot take it now
 * @param isHopeless whether what `store` threw will be thrown again, whenever it is tried
 */
export function makeLateRows(
  log: Log,
  store: (row: AuditRow, value: unknown) => Promise<boolean>,
  isHopeless: (error: unknown) => boolean,
): LateRows {
  const late: { row: AuditRow; value: unknown }[] = [];
  return {
    keep: (row, value) => {
      if (late.length < MOST_LATE) late.push({ row, value });
      else log.error({ auditId: row.id }, 'too many outcomes wait for the store: a restart closes this one as unknown');
    },
    retry: async () => {
      for (let kept = late.shift(); kept; kept = late.shift()) {
        const auditId = kept.row.id;
        try {
          const stands = await store(kept.row, kept.value);
          if (!stands) log.warn({ auditId }, 'an outcome came too late: its row was closed');
        } catch (error) {
          if (!isHopeless(error)) {
            late.unshift(kept);
            break;
          }
          log.error({ err: error, auditId }, 'an outcome cannot be stored: a restart closes it as unknown');
        }
      }
      return late.length;
    },
  };
}
