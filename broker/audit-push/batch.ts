/** Builds the next batch of a sink: rows of the receipt log from its cursor on, in the sink's format. */
import { setImmediate } from 'node:timers/promises';
import type { Broker } from '../broker.ts';
import type { Format } from '../config-file/audit-sinks.ts';
import { entriesFrom, logRow, type PlacedRow, rowsOfEntries } from '../receipt-log/log-rows.ts';
import { originOf } from '../receipt-log/read-log.ts';
import type { SinkWithLog } from '../store/audit-sinks.ts';
import { ocsfEvent } from './ocsf.ts';
import type { OcsfSource } from './ocsf-parts.ts';
import type { Batch, Line } from './sink.ts';

/** Maximum rows in a batch, unless its receiver accepts fewer. */
export const MAX_ROWS = 500;
/** Maximum UTF-8 bytes of the texts in a batch. */
const MAX_BYTES = 1024 * 1024;
/** Rows that are read and serialised per turn of the event loop, since calls wait for it. */
const ROWS_PER_TURN = 32;

/** A row that this version cannot read, such as one written by a later version; the message names the row and the remedy. */
export class UnreadableRow extends Error {}

function lineOf(placed: PlacedRow, format: Format, source: OcsfSource): Line {
  const { id, created_at, finished_at, reason } = placed.row;
  try {
    const sent = format === 'ocsf' ? ocsfEvent(placed, source) : logRow(placed);
    return { index: placed.index, id, at: finished_at ?? created_at, reason, text: JSON.stringify(sent) };
  } catch (cause) {
    throw new UnreadableRow(`The row ${id} cannot be read by this version: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Returns the batch in flight, with the same rows as when it was first sent, or a new one of up to `mostRows`. `end`: exclusive end index;
 * equal to the cursor when there is nothing to send. `lines` may be empty, when all of the rows were deleted. Rejects with UnreadableRow.
 */
export async function nextBatch(
  broker: Pick<Broker, 'store' | 'baseUrl' | 'did'>,
  sink: SinkWithLog,
  mostRows: number,
): Promise<{ end: number; lines: Line[] }> {
  const { organisation_id: organisationId, next_index: first, batch_end, log_size } = sink;
  const source: OcsfSource = { issuer: broker.did, chain: await originOf(broker, organisationId) };
  const most = batch_end ?? Math.min(first + mostRows, Number(log_size));
  const lines: Line[] = [];
  let bytes = 0;
  let end = first;
  while (end < most) {
    const entries = await entriesFrom(broker.store.db, organisationId, end, Math.min(end + ROWS_PER_TURN, most));
    if (entries.length === 0) break;
    for (const placed of await rowsOfEntries(broker.store.db, organisationId, entries, end)) {
      const line = lineOf(placed, sink.format as Format, source);
      bytes += Buffer.byteLength(line.text);
      // A row larger than the limit is sent alone.
      if (batch_end === null && bytes > MAX_BYTES && lines.length > 0) return { end: placed.index, lines };
      lines.push(line);
    }
    end += entries.length;
    await setImmediate();
  }
  return { end, lines };
}

/** Builds a batch. Its id names sink and range, and a row's id, which tells apart histories of the log: ids of rows are never reused. */
export function batchOf(sinkId: string, first: number, end: number, lines: readonly Line[]): Batch | undefined {
  const [line, ...more] = lines;
  return (
    line && { id: `audit_${sinkId}_${first}-${end - 1}_${line.id.slice(-12)}`, first, end, lines: [line, ...more] }
  );
}
