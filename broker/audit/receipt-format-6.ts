/**
 * The payload of receipts with `receipt_format` 6: that of one of the formats before, and at its end the trace that the call is in.
 * Frozen as those are: a change is a new format, in a file beside this one.
 */
import type { AuditRow } from '../store/audit.ts';
import { payloadText1 } from './receipt-format-1.ts';
import { needsFormat2, payloadText2 } from './receipt-format-2.ts';
import { needsFormat3, payloadText3 } from './receipt-format-3.ts';
import { needsFormat4, payloadText4 } from './receipt-format-4.ts';
import { needsFormat5, payloadText5 } from './receipt-format-5.ts';

/** Whether a row names a trace, which the formats before cannot. */
export const needsFormat6 = ({ kind, flags }: AuditRow): boolean =>
  kind === 'action' && flags?.includes('"trace_id":"') === true;

/** The JSON text of a final row's payload; `issuer`: the broker's DID. The trace's id: 32 hexadecimal digits. */
export function payloadText6(row: AuditRow, issuer: string): string {
  const { trace_id }: { trace_id?: string } = JSON.parse(row.flags ?? '{}');
  const before = [
    { needs: needsFormat5, text: payloadText5 },
    { needs: needsFormat4, text: payloadText4 },
    { needs: needsFormat3, text: payloadText3 },
    { needs: needsFormat2, text: payloadText2 },
  ].find(({ needs }) => needs(row));
  const text = (before?.text ?? payloadText1)(row, issuer);
  return `${text.slice(0, -1)},"trace_id":${JSON.stringify(trace_id ?? null)}}`;
}
