/** Normalises texts of a row for storage: they may contain any input of a caller, and refusals must be recordable. */
import type { AuditRow } from '../store/audit.ts';
import { AUDIT_COLUMNS } from '../store/audit-columns.ts';

/** Longer than any generated detail, and than texts of owners and agents. */
const LONGEST_DETAIL = 4_096;

/**
 * A text that both stores keep unchanged. PostgreSQL refuses NUL, and silently replaces lone surrogates: then the stored row would
 * differ from the signed one.
 */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed();

/** Normalises every text of the row in place. */
export function makeStorable(row: AuditRow): void {
  if (row.detail !== null && row.detail.length > LONGEST_DETAIL) row.detail = `${row.detail.slice(0, LONGEST_DETAIL)}…`;
  // Hot path: no allocation unless something has to be replaced.
  for (const column of AUDIT_COLUMNS) {
    const value = row[column];
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed()))
      Object.assign(row, { [column]: storable(value) });
  }
}
