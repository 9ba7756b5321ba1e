/** The hot path's own connection: its reads, and rows that must be durable before an answer. */
import { closeSync, fdatasync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { asInputs, statementCache } from './sqlite-statements.ts';
import { bind, type Prepared, type Values } from './store.ts';

export type HotConnection = {
  read(statement: Prepared, values: Values): unknown[][];
  /** Writes all rows by the statement for one, in one transaction, and commits it to the log, not yet to the disk. */
  append<Row>(statement: Prepared<Row>, rows: readonly Values[]): Row[];
  /** Resolves when everything that was appended before this was called is on the disk. */
  sync(): Promise<void>;
  close(): void;
};

/**
 * Works on the database at `path` through a connection with `synchronous=NORMAL`: with that SQLite keeps the order of
 * the write-ahead log and of checkpoints, but leaves it to us to synchronise a commit. We do so in the thread pool, where
 * SQLite would hold up every other call until the disk has answered.
 *
 * No transaction is ever open here when control is given away, so a read sees the last committed state and is part of
 * nothing. Reads and appends share the connection because SQLite forgets its cached pages whenever another one writes.
 */
export function makeHotConnection(connection: DatabaseSync, path: string): HotConnection {
  const prepare = statementCache(connection);
  const prepareRead = statementCache(connection, { arrays: true });
  let log: number | undefined;
  return {
    read: (statement, values) =>
      prepareRead(statement.sql).all(...asInputs(bind(statement, [values]))) as unknown as unknown[][],
    append: <Row>(statement: Prepared<Row>, rows: readonly Values[]) => {
      const prepared = prepare(statement.sql);
      const written: Row[] = [];
      prepare('BEGIN IMMEDIATE').run();
      try {
        for (const row of rows) written.push(...(prepared.all(...asInputs(bind(statement, [row]))) as Row[]));
        prepare('COMMIT').run();
        return written;
      } catch (error) {
        if (connection.isTransaction) prepare('ROLLBACK').run();
        throw error;
      }
    },
    sync: () =>
      new Promise((resolve, reject) => {
        // One and the same file as long as any connection is open.
        log ??= openSync(`${path}-wal`, 'r+');
        fdatasync(log, (error) => (error ? reject(error) : resolve()));
      }),
    close: () => {
      if (log !== undefined) closeSync(log);
      connection.close();
    },
  };
}
