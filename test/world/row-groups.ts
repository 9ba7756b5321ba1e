/** Groups of audit rows written by the store's own appender, without the thread that it lives in otherwise. */

import { type AuditRow, auditStatement } from '../../broker/store/audit.ts';
import { AUDIT_COLUMNS } from '../../broker/store/audit-columns.ts';
import { openAppender } from '../../broker/store/open-appender.ts';
import type { Store } from '../../broker/store/store.ts';
import { afterFile } from './after-file.ts';

/** A writer of groups, each in one durable transaction, as they are. Answers the ids that were written. `areNew`: as of `Appender`. */
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
