/** Appending to the embedded store. */
import { closeSync, fdatasync, openSync } from 'node:fs';
import type { Appended, Appender } from './appender.ts';
import { openWriter, SYNCHRONOUS } from './sqlite-connection.ts';
import { asInputs, statementCache } from './sqlite-statements.ts';

/**
 * Appends through a connection with `synchronous=NORMAL`: with that SQLite keeps the order of the write-ahead log and of
 * checkpoints, but leaves it to us to synchronise a commit. We do so in the thread pool, where SQLite would hold up the next
 * group until the disk has answered; commits that come meanwhile share the next synchronisation.
 *
 * The statement is run for one row after the other, which SQLite does faster than one statement for all.
 */
export function openSqliteAppender(path: string): Appender {
  const connection = openWriter(path, { synchronous: SYNCHRONOUS.NORMAL });
  const prepare = statementCache(connection, { arrays: true });
  // One and the same file as long as any connection is open.
  const log = openSync(`${path}-wal`, 'r+');
  const synchronise = together(
    () => new Promise<void>((resolve, reject) => fdatasync(log, (error) => (error ? reject(error) : resolve()))),
  );
  return {
    append: async ({ sql, rest }, rows): Promise<Appended> => {
      const insert = prepare(sql);
      const ids: string[] = [];
      prepare('BEGIN IMMEDIATE').run();
      try {
        for (const row of rows)
          for (const [id] of insert.all(...asInputs(row), ...asInputs(rest)) as unknown as [string][]) ids.push(id);
        prepare('COMMIT').run();
      } catch (error) {
        if (connection.isTransaction) prepare('ROLLBACK').run();
        throw error;
      }
      return { ids, durable: synchronise() };
    },
    close: async () => {
      await synchronise().catch(() => {});
      closeSync(log);
      connection.close();
    },
  };
}

/** Does `work` for all who asked before it began; who asks while it is under way waits for the next. */
function together(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const begin = (): Promise<void> => {
    next = undefined;
    const done = work().finally(() => {
      if (running === done) running = undefined;
    });
    running = done;
    return done;
  };
  return () => {
    if (!running) return begin();
    next ??= running.then(begin, begin);
    // Whoever asked says what a failure means, when it comes to look.
    next.catch(() => {});
    return next;
  };
}
