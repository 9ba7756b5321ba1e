/** How many rows a batch to each sink may have: receivers limit the size of requests, and tell it by refusing one (413). */
import { MOST_ROWS } from './batch.ts';

/** A batch of as many rows as may be that was taken adds a sixteenth, so that few batches begin with a refusal. */
const GROWTH = 1 / 16;

export type RowLimits = {
  /** Rows that the next batch may have, at least 1. */
  of(sinkId: string): number;
  /** A batch of so many rows was too large: the next ones have half as many. */
  refused(sinkId: string, rows: number): void;
  /** A batch of so many rows was taken. */
  taken(sinkId: string, rows: number): void;
};

/** Keeps them in memory, where a sink has fewer than all others: a process that starts learns them again. */
export function makeRowLimits(): RowLimits {
  const limits = new Map<string, number>();
  const of = (sinkId: string) => limits.get(sinkId) ?? MOST_ROWS;
  return {
    of,
    refused: (sinkId, rows) => limits.set(sinkId, Math.max(1, Math.floor(rows / 2))),
    taken: (sinkId, rows) => {
      const limit = of(sinkId);
      if (rows < limit) return;
      const grown = limit + Math.ceil(limit * GROWTH);
      if (grown < MOST_ROWS) limits.set(sinkId, grown);
      else limits.delete(sinkId);
    },
  };
}
