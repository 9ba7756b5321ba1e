/** The interface of both stores, and prepared statements for the hot path. */
import type { CompiledQuery, Kysely } from 'kysely';
import type { AppendTo } from './appender.ts';
import type { Db } from './db.ts';
import type { Notices } from './notices.ts';
import type { Schema } from './schema.ts';

export type { Db };

/** A compiled statement with named parameters. */
export type Prepared = {
  /** The name of the prepared statement on PostgreSQL. */
  name: string;
  sql: string;
  slots: readonly (Slot | unknown)[];
};

export type Store = {
  dialect: 'sqlite' | 'postgres';
  bytes: 'blob' | 'bytea';
  db: Kysely<Schema>;
  /**
   * Runs a prepared select outside any transaction: rows as lists of values in the order of its columns. Synchronous
   * on SQLite, a promise on PostgreSQL.
   */
  read(statement: Prepared, values: Values): unknown[][] | Promise<unknown[][]>;
  /**
   * Where to read one report, outside of transactions; each statement sees at least what the previous one saw. Either a standby, some ten seconds
   * behind at most, or `db` itself. Only for data that no decision depends on and that need not show the latest changes.
   */
  reports(): Promise<Kysely<Schema>>;
  /** Where `openAppender` writes rows that must be durable before an answer. */
  appendTo: AppendTo;
  /** Where the main thread may append rows, if that does not block it and a connection is available. */
  appendHere?: AppendTo;
  /** Runs `work`, which appends, while no transaction is open on `db`: immediately on PostgreSQL, serialised on SQLite. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** A database for migrations, whose statements have no timeout. Undefined: statements never time out. */
  untimed?: () => { db: Kysely<Schema>; close(): Promise<void> };
  /** Notifications to other processes on this store; undefined where there are none (SQLite). */
  notices?: Notices;
  /** Current load, for metrics. */
  load(): StoreLoad;
  close(): Promise<void>;
};

/**
 * PostgreSQL: open connections of this process, how many are in use, and how many statements wait for one; the few dedicated connections of
 * prepared statements are not counted. SQLite: bytes of the database and of its write-ahead log.
 */
export type StoreLoad =
  | { dialect: 'postgres'; connections: number; inUse: number; waiting: number; most: number }
  | { dialect: 'sqlite'; bytes: number; logBytes: number };

/** Parameter values by name. */
export type Values = Readonly<Record<string, unknown>>;

/** A named parameter in a query. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Compiles a statement once. In `build`, `slot('name')` is a parameter, whose value is passed to `store.read` by that name. Kysely itself does
 * not name statements, and PostgreSQL parses and plans an unnamed one on every call, which made the facts query three times slower.
 */
export function prepare(
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: a slot takes the type of the column that it is compared with.
  build: (slot: (name: string) => any) => { compile(): CompiledQuery },
): Prepared {
  const compiled = build((slotName) => new Slot(slotName)).compile();
  return { name, sql: compiled.sql, slots: compiled.parameters };
}

/** The parameter values in the order of the statement. A missing value is a bug, not a null. */
export function bind(statement: Prepared, values: Values): unknown[] {
  return statement.slots.map((slot) => {
    if (!(slot instanceof Slot)) return slot;
    const value = values[slot.name];
    if (value === undefined) throw new Error(`Statement ${statement.name} was run without ${slot.name}.`);
    return value;
  });
}
