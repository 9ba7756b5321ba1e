/** What the two stores have in common, and statements that are prepared once and run on every call. */
import type { CompiledQuery, Kysely, Transaction } from 'kysely';
import type { Notices } from './notices.ts';
import type { Schema } from './schema.ts';

/** The database or a transaction on it: what every function of this folder takes first. */
export type Db = Kysely<Schema> | Transaction<Schema>;

/** A compiled statement whose parameters are filled in by name at each run. */
export type Prepared<_Row = unknown> = {
  /** The name under which PostgreSQL keeps it prepared. */
  name: string;
  sql: string;
  slots: readonly (Slot | unknown)[];
};

export type Store = {
  dialect: 'sqlite' | 'postgres';
  bytes: 'blob' | 'bytea';
  db: Kysely<Schema>;
  /**
   * Runs a prepared select outside any transaction: rows as lists of values in the order of its columns. SQLite answers at
   * once, PostgreSQL with a promise.
   */
  read(statement: Prepared, values: Values): unknown[][] | Promise<unknown[][]>;
  /**
   * Writes rows in a transaction of their own, all or none; durable when the promise resolves. `statementFor(n)` is an
   * insert or upsert of n rows: PostgreSQL takes the one for all rows, SQLite runs the one for one row again and again,
   * which it does faster.
   */
  write<Row>(statementFor: (rows: number) => Prepared<Row>, rows: readonly Values[]): Promise<Row[]>;
  /** What reaches the other processes on this store; undefined where there can be none. */
  notices?: Notices;
  close(): Promise<void>;
};

/** The values of one row, by name. */
export type Values = Readonly<Record<string, unknown>>;

/** Stands in a query for a value that comes at run time: of which row, and its name there. */
class Slot {
  readonly name: string;
  readonly row: number;
  constructor(name: string, row: number) {
    this.name = name;
    this.row = row;
  }
}

/**
 * Compiles a statement once. In `build`, `slot('name')` stands where a value comes, `slot('name', 2)` where the third row's
 * comes; give the values by those names to `store.read` or `store.write`. Kysely itself names no prepared statement, and an unnamed one is parsed and planned anew
 * on every call, which made the facts query three times slower on PostgreSQL.
 */
export function prepare<Row = unknown>(
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: a slot takes the type of the column that it is compared with.
  build: (slot: (name: string, row?: number) => any) => { compile(): CompiledQuery },
): Prepared<Row> {
  const compiled = build((slotName, row = 0) => new Slot(slotName, row)).compile();
  return { name, sql: compiled.sql, slots: compiled.parameters };
}

/** The values of one run, in the order of the statement's parameters. A missing value is a bug, never a null. */
export function bind(statement: Prepared<unknown>, rows: readonly Values[]): unknown[] {
  return statement.slots.map((slot) => {
    if (!(slot instanceof Slot)) return slot;
    const value = rows[slot.row]?.[slot.name];
    if (value === undefined) throw new Error(`Statement ${statement.name} was run without ${slot.name}.`);
    return value;
  });
}
