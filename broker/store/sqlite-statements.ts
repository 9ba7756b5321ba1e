import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';

/** More distinct statements than the broker has; beyond it the oldest is prepared again when next used. */
const KEPT_STATEMENTS = 500;

/** Statements of one connection, prepared once. With `arrays` they answer rows as lists of values, not as objects. */
export function statementCache(database: DatabaseSync, { arrays } = { arrays: false }): (sql: string) => StatementSync {
  const kept = new Map<string, StatementSync>();
  return (sql) => {
    const found = kept.get(sql);
    if (found) return found;
    const statement = database.prepare(sql);
    statement.setReturnArrays(arrays);
    if (kept.size >= KEPT_STATEMENTS) kept.delete(kept.keys().next().value as string);
    kept.set(sql, statement);
    return statement;
  };
}

/** Parameters as the types of `node:sqlite` want them. */
export const asInputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
