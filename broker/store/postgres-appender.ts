/** Appending to the shared store. */
import type { Appender, AppendTo } from './appender.ts';
import { openPreparedStatements } from './postgres-statements.ts';

const UNIQUE_VIOLATION = '23505';

/**
 * Appends through connections of its own. PostgreSQL takes one statement for all rows; what it has committed is durable.
 * Rows that are new are copied: half of what an upsert costs here, and a tenth less there. When one of them is there after
 * all, none was written, and the upsert takes them.
 */
export function openPostgresAppender({ url, connections }: Extract<AppendTo, { dialect: 'postgres' }>): Appender {
  // A connection that broke is replaced by the next statement, and the statement that lost it fails.
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
