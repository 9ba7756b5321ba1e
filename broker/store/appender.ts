/** Writing rows that must be durable before an answer, in groups, from whichever thread. */
import { openPostgresAppender } from './postgres-appender.ts';
import { openSqliteAppender } from './sqlite-appender.ts';

/** Where rows are appended. Goes to another thread as it is. */
export type AppendTo = { dialect: 'sqlite'; path: string } | { dialect: 'postgres'; url: string; connections: number };

/** An insert or upsert of so many rows that answers the ids it wrote: the rows' values one after the other, then `rest`. */
export type AppendStatement = { name: string; sql: string; rest: readonly unknown[] };

export type Appender = {
  /**
   * Writes rows in a transaction of their own, all or none. Resolves when they are durable, so that power may fail, with the
   * ids that were written.
   */
  append(statement: AppendStatement, rows: readonly (readonly unknown[])[]): Promise<string[]>;
  close(): Promise<void>;
};

/** Opens an appender of its own connections, on a store that is open. */
export function openAppender(to: AppendTo): Appender {
  return to.dialect === 'sqlite' ? openSqliteAppender(to.path) : openPostgresAppender(to);
}
