/** Appends rows to SQLite. */
import type { Appender } from './appender.ts';
import { APPENDER_LOG_BYTES, asInputs, openWriter, statementCache } from './sqlite-connection.ts';

/**
 * Appends through a connection of its own, row by row, which SQLite does faster than one statement for all. The commit blocks on the disk, so
 * this runs in a thread of its own; Node's thread pool would wake two more threads for every batch.
 */
export function openSqliteAppender(path: string): Appender {
  const connection = openWriter(path, APPENDER_LOG_BYTES);
  const prepare = statementCache(connection, { arrays: true });
  return {
    append: async ({ sql, rest }, rows) => {
      const insert = prepare(sql);
      const ids: string[] = [];
      prepare('BEGIN IMMEDIATE').run();
      try {
        for (const row of rows)
          for (const [id] of insert.all(...asInputs(row), ...asInputs(rest)) as unknown as [string][]) ids.push(id);
        prepare('COMMIT').run();
      } catch (error) {
        if (connection.isTransaction) prepare('ROLLBACK').run();
        throw error;
      }
      return ids;
    },
    close: async () => connection.close(),
  };
}
