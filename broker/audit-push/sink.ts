/** What a kind of sink is: one file in this folder that delivers batches. It is named in kinds.ts, and its settings in config-file/audit-sinks.ts. */

import type { Format } from '../config-file/audit-sinks.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { Instant } from '../policy/facts.ts';
import type { RemoteFolder } from '../runtime/remote-folder.ts';

/** A row of the audit as it is sent. */
export type Line = {
  /** In the receipt log. */
  index: number;
  /** Of the row. */
  id: string;
  /** When the row became final. */
  at: Instant;
  /** What happened: `reason` of the row. */
  reason: string;
  /** The JSON text, without a newline. */
  text: string;
};

/** Rows that are delivered together, and again together until they arrived. At least one. */
export type Batch = {
  /** The same each time that the same rows are sent: receivers that keep it take nothing twice. */
  id: string;
  /** Index of the first row, and of the row after the last. */
  first: number;
  end: number;
  lines: readonly [Line, ...Line[]];
};

/** What a batch is delivered with. */
export type Delivering<Settings> = {
  sinkId: string;
  name: string;
  organisationId: string;
  format: Format;
  settings: Settings;
  secret: Secret | undefined;
  /** The only way out to the network. */
  outbound: Outbound;
  /** Undefined: this broker writes no files. */
  folder: RemoteFolder | undefined;
  now: Instant;
  /** The id of the row that stands at an index of the log; undefined: there is none (any more). */
  idAt: (index: number) => Promise<string | undefined>;
};

/**
 * What came of it. `arrived`: the receiver acknowledged all of it; `rejected`: so many rows of it it said that it does not keep. `failed`:
 * it is sent again, not before `afterMs` where the receiver said so. `isTooLarge`: its request is, and a batch of fewer rows may be taken.
 * `why`: a sentence of ours, with nothing secret in it.
 */
export type Delivered =
  | { kind: 'arrived'; rejected?: { rows: number; why: string } }
  | { kind: 'failed'; why: string; afterMs?: number; isTooLarge?: true };

export type Sink<Settings> = {
  /** Must not throw for what the other side does. */
  deliver(delivering: Delivering<Settings>, batch: Batch): Promise<Delivered>;
  /** Tries whether it would take a batch, without a row. */
  test(delivering: Delivering<Settings>): Promise<Delivered>;
};
