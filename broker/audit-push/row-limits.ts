/** Limits of rows per batch and sink: receivers limit the size of requests, which shows only when they refuse one (413). */
import { MAX_ROWS } from './batch.ts';

/** A successful batch of the maximum size raises the limit by a sixteenth, so that few batches are refused first. */
const GROWTH = 1 / 16;

export type RowLimits = {
  /** Returns the limit of rows for the next batch, at least 1. */
  of(sinkId: string): number;
  /** Reports that a batch of this many rows was too large: halves the limit. */
  refused(sinkId: string, rows: number): void;
  /** Reports that a batch of this many rows was accepted. */
  taken(sinkId: string, rows: number): void;
};

/** Creates the limits. They are kept in memory, only for sinks below the maximum, and learnt again after a restart. */
export function makeRowLimits(): RowLimits {
  const limits = new Map<string, number>();
  const of = (sinkId: string) => limits.get(sinkId) ?? MAX_ROWS;
  return {
    of,
    refused: (sinkId, rows) => limits.set(sinkId, Math.max(1, Math.floor(rows / 2))),
    taken: (sinkId, rows) => {
      const limit = of(sinkId);
      if (rows < limit) return;
      const grown = limit + Math.ceil(limit * GROWTH);
      if (grown < MAX_ROWS) limits.set(sinkId, grown);
      else limits.delete(sinkId);
    },
  };
}
