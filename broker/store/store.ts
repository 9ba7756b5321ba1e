/** What the two stores have in common, and statements that are prepared once and run on every call. */
import type { CompiledQuery, Kysely, Transaction } from 'kysely';
import type { AppendTo } from './appender.ts';
import type { Notices } from './notices.ts';
import type { Schema } from './schema.ts';

/** The database or a transaction on it: what every function of this folder takes first. */
export type Db = Kysely<Schema> | Transaction<Schema>;

/** A compiled statement whose parameters are filled in by name at each run. */
export type Prepared = {
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
  /** Where `openAppender` writes rows that must be durable before an answer. */
  appendTo: AppendTo;
  /** The same for the thread that answers, where that does not hold it up, and where there is a connection for it. */
  appendHere?: AppendTo;
  /** Does `work`, which appends, while no transaction is open on `db`: at once on PostgreSQL, in turn on SQLite. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** What reaches the other processes on this store; undefined where there can be none. */
  notices?: Notices;
  close(): Promise<void>;
};

/** The values of one run, by name. */
export type Values = Readonly<Record<string, unknown>>;

/** Stands in a query for a value that comes at run time, by its name there. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Compiles a statement once. In `build`, `slot('name')` stands where a value comes; give the values by those names to
 * `store.read`. Kysely itself names no prepared statement, and an unnamed one is parsed and planned anew on every call,
 * which made the facts query three times slower on PostgreSQL.
 */
export function prepare(
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: a slot takes the type of the column that it is compared with.
  build: (slot: (name: string) => any) => { compile(): CompiledQuery },
): Prepared {
  const compiled = build((slotName) => new Slot(slotName)).compile();
  return { name, sql: compiled.sql, slots: compiled.parameters };
}

/** The values of one run, in the order of the statement's parameters. A missing value is a bug, never a null. */
export function bind(statement: Prepared, values: Values): unknown[] {
  return statement.slots.map((slot) => {
    if (!(slot instanceof Slot)) return slot;
    const value = values[slot.name];
    if (value === undefined) throw new Error(`Statement ${statement.name} was run without ${slot.name}.`);
    return value;
  });
}
