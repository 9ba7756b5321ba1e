/** Writing rows that must be durable before an answer, in groups, from whichever thread. */
import { openPostgresAppender } from './postgres-appender.ts';
import { openSqliteAppender } from './sqlite-appender.ts';

/** Where rows are appended. Goes to another thread as it is. */
export type AppendTo = { dialect: 'sqlite'; path: string } | { dialect: 'postgres'; url: string; connections: number };

/**
 * An insert or upsert of so many rows that answers the ids it wrote: the rows' values one after the other, then `rest`.
 * `copy`: for PostgreSQL, how rows are written that are new, in whatever number; it has no place for a conflict.
 */
export type AppendStatement = { name: string; sql: string; rest: readonly unknown[]; copy: string };

export type Appender = {
  /**
   * Writes rows in a transaction of their own, all or none. Resolves when they are durable, so that power may fail, with the
   * ids that were written. `areNew`: as far as anybody knows, none of them is there, which is faster where it is so. The id
   * is the second value of a row.
   */
  append(statement: AppendStatement, rows: readonly (readonly unknown[])[], areNew: boolean): Promise<string[]>;
  close(): Promise<void>;
};

/** Opens an appender of its own connections, on a store that is open. */
export function openAppender(to: AppendTo): Appender {
  return to.dialect === 'sqlite' ? openSqliteAppender(to.path) : openPostgresAppender(to);
}
