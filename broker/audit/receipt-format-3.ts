/**
 * The payload of receipts with `receipt_format` 3: that of format 1 or 2, and at its end for whom the call was made. Frozen as those
 * are: a change is a new format, in a file beside this one.
 */
import type { AuditRow } from '../store/audit.ts';
import { payloadText1 } from './receipt-format-1.ts';
import { needsFormat2, payloadText2 } from './receipt-format-2.ts';

/** Whether a row says that a caller was honoured, which the formats before cannot. */
export const needsFormat3 = ({ kind, flags }: AuditRow): boolean =>
  kind === 'action' && flags?.includes('"caller":{') === true;

/** The JSON text of a final row's payload; `issuer`: the broker's DID. `verified` or `asserted`, and the random id; never who it is. */
export function payloadText3(row: AuditRow, issuer: string): string {
  const flags: { caller?: { verified?: boolean; person_id?: string } } = JSON.parse(row.flags ?? '{}');
  const { verified, person_id } = flags.caller ?? {};
  const caller = {
    identity: verified === true ? 'verified' : 'asserted',
    ...(person_id !== undefined && { person_id }),
  };
  const before = needsFormat2(row) ? payloadText2(row, issuer) : payloadText1(row, issuer);
  return `${before.slice(0, -1)},"caller":${JSON.stringify(caller)}}`;
}
