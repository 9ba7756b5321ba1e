/** Appends rows that must be durable before a response, in batches, from any thread. */

/** The store that rows are appended to. Can be passed to another thread. */
export type AppendTo = { dialect: 'sqlite'; path: string } | { dialect: 'postgres'; url: string; connections: number };

/**
 * An upsert of a fixed number of rows that returns the ids it wrote. Parameters: the values of the rows, then `rest`.
 * `copy`: PostgreSQL's COPY statement for new rows, in any number; it fails on conflicts.
 */
export type AppendStatement = { name: string; sql: string; rest: readonly unknown[]; copy: string };

export type Appender = {
  /**
   * Writes rows in a transaction of their own, all or none. Resolves with the ids that were written, when they are durable
   * against power loss. `areNew`: a hint that none of them exists yet, which is faster if true. The id is the second value
   * of a row.
   */
  append(statement: AppendStatement, rows: readonly (readonly unknown[])[], areNew: boolean): Promise<string[]>;
  close(): Promise<void>;
};
