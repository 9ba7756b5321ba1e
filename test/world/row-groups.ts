/** Writes groups of audit rows with the store's own appender, without its thread. */

import { type AuditRow, auditStatement } from '../../broker/store/audit.ts';
import { AUDIT_COLUMNS } from '../../broker/store/audit-columns.ts';
import { openAppender } from '../../broker/store/open-appender.ts';
import type { Store } from '../../broker/store/store.ts';
import { afterFile } from './runner/after-file.ts';

/** Returns a writer of groups, each in one durable transaction, unchanged. The writer returns the written ids. `areNew`: see `Appender`. */
export function groupWriter(store: Store, areNew = false): (rows: readonly AuditRow[]) => Promise<Set<string>> {
  const appender = openAppender(store.appendTo);
  afterFile(() => appender.close());
  return async (rows) => {
    const statement = auditStatement(store.db, store.dialect === 'sqlite' ? 1 : rows.length);
    const values = rows.map((row) => AUDIT_COLUMNS.map((column) => row[column]));
    const ids = await store.exclusively(() => appender.append(statement, values, areNew));
    return new Set(ids);
  };
}
