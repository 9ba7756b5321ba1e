/** What a caller sent may be part of any text on a row: a store has to take it, or a refusal could not be recorded. */
import type { AuditRow } from '../store/audit.ts';
import { AUDIT_COLUMNS } from '../store/audit-columns.ts';

/** Longer than whatever is said of a call, and than the words of owners and agents. */
const LONGEST_DETAIL = 4_096;

/**
 * A text that both stores take as it is. PostgreSQL takes no NUL, and would silently rewrite an unpaired surrogate: then
 * another row would stand there than was signed.
 */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed();

/** Makes every text of the row one that both stores take as it is, in place. */
export function makeStorable(row: AuditRow): void {
  if (row.detail !== null && row.detail.length > LONGEST_DETAIL) row.detail = `${row.detail.slice(0, LONGEST_DETAIL)}…`;
  // Each call comes by here: nothing is made where nothing is wrong.
  for (const column of AUDIT_COLUMNS) {
    const value = row[column];
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed()))
      Object.assign(row, { [column]: storable(value) });
  }
}
