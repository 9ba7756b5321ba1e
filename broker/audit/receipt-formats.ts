/**
 * The payloads of receipts by `receipt_format`. Frozen: exactly these bytes are signed, so a change of a format breaks all its receipts.
 * A change needs a new format, at the end of the list.
 */
import type { AuditRow } from '../store/audit.ts';
import { membersOf, openMembers } from '../store/open-json.ts';
import { payloadText1 } from './receipt-format-1.ts';

/** `needs`: whether the row has data that earlier formats cannot carry. `text`: builds this format's payload from that of the earlier formats. */
type LaterFormat = { format: number; needs(row: AuditRow): boolean; text(before: string, row: AuditRow): string };

const says = ({ flags }: AuditRow, member: string): boolean => flags?.includes(member) === true;
const callSays = (row: AuditRow, member: string): boolean => row.kind === 'action' && says(row, member);

// Flags as stored, not parsed with today's schema, which must not change what was signed.
const flagsOf = ({ flags }: AuditRow) => openMembers(flags);

const withMember = (before: string, name: string, value: unknown): string =>
  `${before.slice(0, -1)},"${name}":${JSON.stringify(value)}}`;

const LATER: readonly LaterFormat[] = [
  {
    // Adds the refs that a push asked to change.
    format: 2,
    needs: (row) => callSays(row, '"pushed_refs":['),
    text: (before, row) => withMember(before, 'pushed_refs', flagsOf(row).pushed_refs ?? []),
  },
  {
    // Adds the caller for whom the call was made: `verified` or `asserted`, and the random id; never the identity.
    format: 3,
    needs: (row) => callSays(row, '"caller":{'),
    text: (before, row) => {
      const { verified, person_id } = membersOf(flagsOf(row).caller);
      const identity = verified === true ? 'verified' : 'asserted';
      return withMember(before, 'caller', { identity, ...(person_id !== undefined && { person_id }) });
    },
  },
  {
    // Adds the static key that authenticated the agent: its id, which is not secret.
    format: 4,
    needs: (row) => callSays(row, '"static_key":"'),
    text: (before, row) => withMember(before, 'static_key', flagsOf(row).static_key ?? null),
  },
  {
    // Adds the standing approval that allowed the call, or that the decision created: its id, and the uses left, or all its terms.
    format: 5,
    needs: (row) => says(row, '"standing_approval":{'),
    text: (before, row) => withMember(before, 'standing_approval', flagsOf(row).standing_approval ?? null),
  },
  {
    // Adds the trace id of the call: 32 hexadecimal digits.
    format: 6,
    needs: (row) => callSays(row, '"trace_id":"'),
    text: (before, row) => withMember(before, 'trace_id', flagsOf(row).trace_id ?? null),
  },
  {
    // Omits `sub` where no agent acted: libraries reject null, which is not a StringOrURI (RFC 7519, 4.1.2).
    format: 7,
    needs: ({ agent_public_id: agent }) => agent === null,
    text: (before) => before.replace(',"sub":null,', ','),
  },
  {
    // Adds the workload whose token authenticated the agent: its id, which is not secret.
    format: 8,
    needs: (row) => callSays(row, '"workload":"'),
    text: (before, row) => withMember(before, 'workload', flagsOf(row).workload ?? null),
  },
  {
    // For a push, adds the refs that the code host refused, and why some refs have no report (`not_asked`, `missing`).
    format: 9,
    needs: (row) => callSays(row, '"refused_refs":[') || callSays(row, '"push_report":"'),
    text: (before, row) => {
      const { refused_refs = [], push_report = null } = flagsOf(row);
      return withMember(withMember(before, 'refused_refs', refused_refs), 'push_report', push_report);
    },
  },
];

/** Returns the format for a new receipt: the lowest that carries all data of the row. */
export const formatOf = (row: AuditRow): number => LATER.findLast(({ needs }) => needs(row))?.format ?? 1;

/** Returns the JSON text of a final row's payload; undefined for an unknown format. `issuer`: the broker's DID. */
export function payloadText(format: number, row: AuditRow, issuer: string): string | undefined {
  let text = payloadText1(row, issuer);
  if (format === 1) return text;
  for (const one of LATER) {
    if (one.format === format) return one.text(text, row);
    if (one.needs(row)) text = one.text(text, row);
  }
  return undefined;
}
