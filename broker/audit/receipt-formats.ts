/**
 * The payloads of receipts by `receipt_format`. Frozen: what is signed is these bytes, so a change of a format breaks every receipt of it.
 * A change is a new format, at the end of the list.
 */
import type { AuditRow } from '../store/audit.ts';
import { membersOf, openMembers } from '../store/open-json.ts';
import { payloadText1 } from './receipt-format-1.ts';

/** `needs`: whether a row says what the formats before cannot. `text`: the payload in its format, made of that in the formats before. */
type LaterFormat = { format: number; needs(row: AuditRow): boolean; text(before: string, row: AuditRow): string };

const says = ({ flags }: AuditRow, member: string): boolean => flags?.includes(member) === true;
const callSays = (row: AuditRow, member: string): boolean => row.kind === 'action' && says(row, member);

// As they were written: the schema of today has no part in what was signed.
const flagsOf = ({ flags }: AuditRow) => openMembers(flags);

const withMember = (before: string, name: string, value: unknown): string =>
  `${before.slice(0, -1)},"${name}":${JSON.stringify(value)}}`;

const LATER: readonly LaterFormat[] = [
  {
    // What a push asked to change.
    format: 2,
    needs: (row) => callSays(row, '"pushed_refs":['),
    text: (before, row) => withMember(before, 'pushed_refs', flagsOf(row).pushed_refs ?? []),
  },
  {
    // For whom the call was made: `verified` or `asserted`, and the random id; never who it is.
    format: 3,
    needs: (row) => callSays(row, '"caller":{'),
    text: (before, row) => {
      const { verified, person_id } = membersOf(flagsOf(row).caller);
      const identity = verified === true ? 'verified' : 'asserted';
      return withMember(before, 'caller', { identity, ...(person_id !== undefined && { person_id }) });
    },
  },
  {
    // The static key that the agent was authenticated by: its id, which is no secret.
    format: 4,
    needs: (row) => callSays(row, '"static_key":"'),
    text: (before, row) => withMember(before, 'static_key', flagsOf(row).static_key ?? null),
  },
  {
    // The standing approval by which the call was made, or that the decision made: its id, and how many uses are left, or all its terms.
    format: 5,
    needs: (row) => says(row, '"standing_approval":{'),
    text: (before, row) => withMember(before, 'standing_approval', flagsOf(row).standing_approval ?? null),
  },
  {
    // The trace that the call is in: 32 hexadecimal digits.
    format: 6,
    needs: (row) => callSays(row, '"trace_id":"'),
    text: (before, row) => withMember(before, 'trace_id', flagsOf(row).trace_id ?? null),
  },
  {
    // No `sub` where no agent acted: libraries refuse one that is null, which is no StringOrURI (RFC 7519, 4.1.2).
    format: 7,
    needs: ({ agent_public_id: agent }) => agent === null,
    text: (before) => before.replace(',"sub":null,', ','),
  },
  {
    // The workload by whose token the agent was authenticated: its id, which is no secret.
    format: 8,
    needs: (row) => callSays(row, '"workload":"'),
    text: (before, row) => withMember(before, 'workload', flagsOf(row).workload ?? null),
  },
  {
    // Of a push: the refs that the code host refused, and why it did not report on all of them (`not_asked`, `missing`).
    format: 9,
    needs: (row) => callSays(row, '"refused_refs":[') || callSays(row, '"push_report":"'),
    text: (before, row) => {
      const { refused_refs = [], push_report = null } = flagsOf(row);
      return withMember(withMember(before, 'refused_refs', refused_refs), 'push_report', push_report);
    },
  },
];

/** The format of a new receipt: the first that can say all that the row does. */
export const formatOf = (row: AuditRow): number => LATER.findLast(({ needs }) => needs(row))?.format ?? 1;

/** The JSON text of a final row's payload; undefined of a format that is not known. `issuer`: the broker's DID. */
export function payloadText(format: number, row: AuditRow, issuer: string): string | undefined {
  let text = payloadText1(row, issuer);
  if (format === 1) return text;
  for (const one of LATER) {
    if (one.format === format) return one.text(text, row);
    if (one.needs(row)) text = one.text(text, row);
  }
  return undefined;
}
