/**
 * The payload of receipts with `receipt_format` 5: that of one of the formats before, and at its end the standing approval by which the
 * call was made, or that the decision made. Frozen as those are: a change is a new format, in a file beside this one.
 */
import type { AuditRow } from '../store/audit.ts';
import { payloadText1 } from './receipt-format-1.ts';
import { needsFormat2, payloadText2 } from './receipt-format-2.ts';
import { needsFormat3, payloadText3 } from './receipt-format-3.ts';
import { needsFormat4, payloadText4 } from './receipt-format-4.ts';

/** Whether a row names a standing approval, which the formats before cannot. */
export const needsFormat5 = ({ flags }: AuditRow): boolean => flags?.includes('"standing_approval":{') === true;

/** The JSON text of a final row's payload; `issuer`: the broker's DID. The approval's id, and how many uses are left, or all its terms. */
export function payloadText5(row: AuditRow, issuer: string): string {
  const flags: { standing_approval?: unknown } = JSON.parse(row.flags ?? '{}');
  const before = [
    { needs: needsFormat4, text: payloadText4 },
    { needs: needsFormat3, text: payloadText3 },
    { needs: needsFormat2, text: payloadText2 },
  ].find(({ needs }) => needs(row));
  const text = (before?.text ?? payloadText1)(row, issuer);
  return `${text.slice(0, -1)},"standing_approval":${JSON.stringify(flags.standing_approval ?? null)}}`;
}
