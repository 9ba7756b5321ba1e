/** Appending to the shared store. */
import type { Appender, AppendTo } from './appender.ts';
import { openPreparedStatements } from './postgres-statements.ts';

/** Appends through connections of its own. PostgreSQL takes one statement for all rows; what it has committed is durable. */
export function openPostgresAppender({ url, connections }: Extract<AppendTo, { dialect: 'postgres' }>): Appender {
  // A connection that broke is replaced by the next statement, and the statement that lost it fails.
  const statements = openPreparedStatements(url, { max: connections, onError: () => {} });
  return {
    append: async ({ name, sql, rest }, rows) => {
      const written = await statements.run<[string]>({ name, text: sql, values: [...rows.flat(), ...rest] });
      return written.map(([id]) => id);
    },
    close: statements.close,
  };
}
