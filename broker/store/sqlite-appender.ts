/** Appending to the embedded store. */
import type { Appender } from './appender.ts';
import { openWriter } from './sqlite-connection.ts';
import { asInputs, statementCache } from './sqlite-statements.ts';

/**
 * Appends through a connection of its own. The statement is run for one row after the other, which SQLite does faster than
 * one statement for all. The disk is waited for in the commit: with a thread of its own nobody else is held up, and to hand
 * it to the thread pool would wake two threads more for every group.
 */
export function openSqliteAppender(path: string): Appender {
  const connection = openWriter(path);
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
