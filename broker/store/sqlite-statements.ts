import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { recentlyUsed } from '../runtime/recently-used.ts';

/** Half of it is more distinct statements than the broker has. */
const KEPT_STATEMENTS = 1_000;

/** A cache of prepared statements of one connection. With `arrays` they return rows as lists of values, not as objects. */
export function statementCache(database: DatabaseSync, { arrays } = { arrays: false }): (sql: string) => StatementSync {
  const kept = recentlyUsed<StatementSync>(KEPT_STATEMENTS);
  return (sql) => {
    const found = kept.get(sql);
    if (found) return found;
    const statement = database.prepare(sql);
    statement.setReturnArrays(arrays);
    kept.set(sql, statement);
    return statement;
  };
}

/** Parameters as the types of `node:sqlite` want them. */
export const asInputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
