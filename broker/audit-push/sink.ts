/** The interface of a kind of sink: one file in this folder that delivers batches. kinds.ts lists it; its settings are in config-file/audit-sinks.ts. */

import type { Format } from '../config-file/audit-sinks.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { Instant } from '../policy/facts.ts';
import type { RemoteFolder } from '../runtime/remote-folder.ts';

/** A row of the audit in the sink's format. */
export type Line = {
  /** Index in the receipt log. */
  index: number;
  /** Id of the audit row. */
  id: string;
  /** When the row became final. */
  at: Instant;
  /** What happened: `reason` of the row. */
  reason: string;
  /** The JSON text, without a newline. */
  text: string;
};

/** Rows that are delivered together, and retried together until they arrive. At least one row. */
export type Batch = {
  /** The same for each retry of the same rows, so that receivers can detect duplicates. */
  id: string;
  /** Index of the first row, and exclusive end. */
  first: number;
  end: number;
  lines: readonly [Line, ...Line[]];
};

/** What a delivery needs. */
export type Delivering<Settings> = {
  sinkId: string;
  name: string;
  organisationId: string;
  format: Format;
  settings: Settings;
  secret: Secret | undefined;
  /** Egress: all outgoing requests go through it. */
  outbound: Outbound;
  /** Undefined: AUDIT_FOLDER is not set, so this broker writes no files. */
  folder: RemoteFolder | undefined;
  now: Instant;
  /** Returns the id of the row at an index of the log; undefined: there is none (any more). */
  idAt: (index: number) => Promise<string | undefined>;
};

/**
 * Result of a delivery. `arrived`: the receiver acknowledged the batch; `rejected`: the rows in it that the receiver reported as not stored.
 * `failed`: the batch is retried, not before `afterMs` if the receiver gave a time. `isTooLarge`: the request was too large; a batch of fewer
 * rows may succeed. `why`: the broker's own sentence, without secrets.
 */
export type Delivered =
  | { kind: 'arrived'; rejected?: { rows: number; why: string } }
  | { kind: 'failed'; why: string; afterMs?: number; isTooLarge?: true };

export type Sink<Settings> = {
  /** Delivers a batch. Must not throw for faults of the receiver. */
  deliver(delivering: Delivering<Settings>, batch: Batch): Promise<Delivered>;
  /** Tests whether the receiver would accept a batch, without sending a row. */
  test(delivering: Delivering<Settings>): Promise<Delivered>;
};
