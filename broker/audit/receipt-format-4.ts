/**
 * The payload of receipts with `receipt_format` 4: that of format 1, 2 or 3, and at its end the static key that the agent was
 * authenticated by. Frozen as those are: a change is a new format, in a file beside this one.
 */
import type { AuditRow } from '../store/audit.ts';
import { payloadText1 } from './receipt-format-1.ts';
import { needsFormat2, payloadText2 } from './receipt-format-2.ts';
import { needsFormat3, payloadText3 } from './receipt-format-3.ts';

/** Whether a row says that the agent did not sign its token, which the formats before cannot. */
export const needsFormat4 = ({ kind, flags }: AuditRow): boolean =>
  kind === 'action' && flags?.includes('"static_key":"') === true;

/** The JSON text of a final row's payload; `issuer`: the broker's DID. The id of the key, which is no secret. */
export function payloadText4(row: AuditRow, issuer: string): string {
  const { static_key }: { static_key?: string } = JSON.parse(row.flags ?? '{}');
  const before = needsFormat3(row) ? payloadText3 : needsFormat2(row) ? payloadText2 : payloadText1;
  return `${before(row, issuer).slice(0, -1)},"static_key":${JSON.stringify(static_key ?? null)}}`;
}
