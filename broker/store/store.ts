/** What the two stores have in common, and statements that are prepared once and run on every call. */
import type { CompiledQuery, Kysely, Transaction } from 'kysely';
import type { Schema } from './schema.ts';

/** The database or a transaction on it: what every function of this folder takes first. */
export type Db = Kysely<Schema> | Transaction<Schema>;

/** A compiled statement whose parameters are filled in by name at each run. */
export type Prepared<_Row> = {
  /** The name under which PostgreSQL keeps it prepared. */
  name: string;
  sql: string;
  compiled: CompiledQuery;
  slots: readonly (Slot | unknown)[];
};

export type Store = {
  dialect: 'sqlite' | 'postgres';
  bytes: 'blob' | 'bytea';
  db: Kysely<Schema>;
  /** Runs a prepared select outside any transaction. SQLite answers at once, PostgreSQL with a promise. */
  read<Row>(statement: Prepared<Row>, values: Record<string, unknown>): Row[] | Promise<Row[]>;
  /** Runs a prepared insert, update or upsert as a transaction of its own; durable when the promise resolves. */
  write<Row>(statement: Prepared<Row>, values: Record<string, unknown>): Promise<Row[]>;
  close(): Promise<void>;
};

/** Stands in a query for a value that comes at run time. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Compiles a statement once. In `build`, `slot('name')` stands where a value comes; give the values by those names to
 * `store.read` or `store.write`. Kysely itself names no prepared statement, and an unnamed one is parsed and planned anew
 * on every call, which made the facts query three times slower on PostgreSQL.
 */
export function prepare<Row>(
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: a slot takes the type of the column that it is compared with.
  build: (slot: (name: string) => any) => { compile(): CompiledQuery },
): Prepared<Row> {
  const compiled = build((slotName) => new Slot(slotName)).compile();
  return { name, sql: compiled.sql, compiled, slots: compiled.parameters };
}

/** The values of one run, in the order of the statement's parameters. A missing value is a bug, never a null. */
export function bind(statement: Prepared<unknown>, values: Record<string, unknown>): unknown[] {
  return statement.slots.map((slot) => {
    if (!(slot instanceof Slot)) return slot;
    const value = values[slot.name];
    if (value === undefined) throw new Error(`Statement ${statement.name} was run without ${slot.name}.`);
    return value;
  });
}
