/** Appends rows to SQLite and to PostgreSQL. */
import type { Appender, AppendTo } from './appender.ts';
import { openPreparedStatements } from './postgres/statements.ts';
import { APPENDER_LOG_BYTES, asInputs, openWriter, statementCache } from './sqlite/connection.ts';

const UNIQUE_VIOLATION = '23505';

/** Opens an appender with connections of its own, on a store that is already open. */
export const openAppender = (to: AppendTo): Appender =>
  to.dialect === 'sqlite' ? openSqliteAppender(to.path) : openPostgresAppender(to);

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

/**
 * Appends through connections of its own, with one statement for all rows. New rows are written by COPY, which costs half the CPU of an upsert
 * here, and a tenth less on the server. If one of the rows exists after all, COPY fails as a whole, and the upsert is used.
 */
function openPostgresAppender({ url, connections }: Extract<AppendTo, { dialect: 'postgres' }>): Appender {
  // An error of a connection fails its current statement; the next statement opens a new connection.
  const statements = openPreparedStatements(url, { max: connections, onError: () => {} });

  const areCopied = async (statement: string, rows: readonly (readonly unknown[])[]): Promise<boolean> => {
    try {
      await statements.copy(statement, rows);
      return true;
    } catch (error) {
      if ((error as { code?: unknown }).code === UNIQUE_VIOLATION) return false;
      throw error;
    }
  };

  return {
    append: async ({ name, sql, rest, copy }, rows, areNew) => {
      if (areNew && (await areCopied(copy, rows))) return rows.map(([, id]) => id as string);
      const written = await statements.run<[string]>({ name, text: sql, values: [...rows.flat(), ...rest] });
      return written.map(([id]) => id);
    },
    close: statements.close,
  };
}
