/**
 * The payload of receipts with `receipt_format` 2: that of format 1, and at its end what a push asked to change. Frozen as that one is:
 * a change is a new format, in a file beside this one.
 */
import type { AuditRow } from '../store/audit.ts';
import { payloadText1 } from './receipt-format-1.ts';

/** Whether a row says what a push asked to change, which format 1 cannot. */
export const needsFormat2 = ({ kind, flags }: AuditRow): boolean =>
  kind === 'action' && flags?.includes('"pushed_refs":[') === true;

/** The JSON text of a final row's payload; `issuer`: the broker's DID. */
export function payloadText2(row: AuditRow, issuer: string): string {
  const flags: { pushed_refs?: unknown } = JSON.parse(row.flags ?? '{}');
  return `${payloadText1(row, issuer).slice(0, -1)},"pushed_refs":${JSON.stringify(flags.pushed_refs ?? [])}}`;
}
