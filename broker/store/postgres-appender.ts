/** Appending to the shared store. */
import type { Appender, AppendTo } from './appender.ts';
import { openPool } from './postgres-pool.ts';

/** Appends through connections of its own. PostgreSQL takes one statement for all rows; what it has committed is durable. */
export function openPostgresAppender({ url, connections }: Extract<AppendTo, { dialect: 'postgres' }>): Appender {
  // A connection that broke is replaced by the next statement, and the statement that lost it fails.
  const pool = openPool(url, { max: connections, keep: true, onError: () => {} });
  return {
    append: async ({ name, sql, rest }, rows) => {
      const values = [...rows.flat(), ...rest];
      const { rows: written } = await pool.query<[string]>({ name, text: sql, values, rowMode: 'array' });
      return written.map(([id]) => id);
    },
    close: async () => await pool.end(),
  };
}
