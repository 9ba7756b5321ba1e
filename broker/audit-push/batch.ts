/** The next batch of a sink: rows of the receipt log from its cursor on, as they are sent. */
import { setImmediate } from 'node:timers/promises';
import type { Broker } from '../broker.ts';
import type { Format } from '../config-file/audit-sinks.ts';
import { entriesFrom, logRow, type PlacedRow, rowsOfEntries } from '../receipt-log/log-rows.ts';
import { originOf } from '../receipt-log/read-log.ts';
import type { SinkWithLog } from '../store/audit-sinks.ts';
import { ocsfEvent } from './ocsf.ts';
import type { OcsfSource } from './ocsf-parts.ts';
import type { Batch, Line } from './sink.ts';

/** Rows of a batch, unless its receiver takes fewer. */
export const MOST_ROWS = 500;
/** UTF-8 bytes of the texts of a batch. */
const MOST_BYTES = 1024 * 1024;
/** Rows that are read and written down without a turn of the event loop: calls wait for it. */
const AT_ONCE = 32;

/** A row that this version cannot read, as one that a later version wrote; says which, and what to do. */
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
 * The batch that is on its way, as it was when it was sent first; or a new one, of up to `mostRows`. `end`: the index of the row after it; the
 * same as the cursor where there is nothing to send. `lines` may be none, of rows that are not there any more. Rejects with UnreadableRow.
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
    const entries = await entriesFrom(broker.store.db, organisationId, end, Math.min(end + AT_ONCE, most));
    if (entries.length === 0) break;
    for (const placed of await rowsOfEntries(broker.store.db, organisationId, entries, end)) {
      const line = lineOf(placed, sink.format as Format, source);
      bytes += Buffer.byteLength(line.text);
      // A row that is larger than a batch goes alone.
      if (batch_end === null && bytes > MOST_BYTES && lines.length > 0) return { end: placed.index, lines };
      lines.push(line);
    }
    end += entries.length;
    await setImmediate();
  }
  return { end, lines };
}

/** A batch with its id, which says who sends, from where to where, and of which history of the log: ids of rows are never used again. */
export function batchOf(sinkId: string, first: number, end: number, lines: readonly Line[]): Batch | undefined {
  const [line, ...more] = lines;
  return (
    line && { id: `audit_${sinkId}_${first}-${end - 1}_${line.id.slice(-12)}`, first, end, lines: [line, ...more] }
  );
}
