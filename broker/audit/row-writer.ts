/** Writes batches of audit rows in the recording thread; a single row in the main thread where the store allows it. */
import { Worker } from 'node:worker_threads';
import type { Broker } from '../broker.ts';
import type { AppendStatement } from '../store/appender.ts';
import { type AuditRow, auditStatement } from '../store/audit.ts';
import { RowFault } from '../store/row-fault.ts';
import type { FromThread, ThreadData, ToThread } from './recording-thread.ts';
import { openRowAppender, type RowAppender } from './row-appender.ts';

export type RowWriter = {
  /**
   * Signs the final rows and writes all rows in one transaction, all or none. `accepted` resolves when the next group may be passed, and
   * never rejects. `written` resolves when the rows are durable, with the ids that were written: a missing id belongs to a row that was
   * final already. `areNew`: none of the ids is stored yet, as far as the caller knows.
   */
  write(rows: readonly AuditRow[], areNew: boolean): { accepted: Promise<void>; written: Promise<ReadonlySet<string>> };
  /** Resolves when accepted groups are written and the thread has ended. */
  close(): Promise<void>;
};

type Group = {
  rows: readonly AuditRow[];
  resolve(ids: ReadonlySet<string>): void;
  reject(error: Error): void;
};

const THREAD = new URL(`./recording-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/**
 * Creates the writer. Only one group is in flight at a time: signing one group while another is committed makes twice as many groups of
 * half the size, at the same cost each for database, disk and context switches. The thread starts with the first group. If it dies, its
 * groups fail, and the next group starts another thread.
 *
 * Where the store allows it, a single row is written in the main thread while nothing else is in flight: the switch to another thread and
 * back would be a tenth of the latency of a lone call.
 */
export function makeRowWriter(broker: Pick<Broker, 'did' | 'clock' | 'metrics' | 'store' | 'keys'>): RowWriter {
  const { store, keys, clock, metrics } = broker;
  const statements = new Map<number, AppendStatement>();
  let thread: Thread | undefined;
  let last = 0;
  const issuer = broker.did;
  let appender = store.appendHere && openRowAppender(store.appendHere, issuer);
  let isBusyHere = false;

  const statementFor = (rows: number): AppendStatement => {
    // SQLite executes the single-row statement repeatedly.
    const size = store.dialect === 'sqlite' ? 1 : rows;
    const statement = statements.get(size) ?? auditStatement(store.db, size);
    statements.set(size, statement);
    return statement;
  };

  const startThread = (): Thread => {
    const started = runThread({ appendTo: store.appendTo, issuer }, () => {
      if (thread === started) thread = undefined;
    });
    return started;
  };

  const send = (rows: readonly AuditRow[], areNew: boolean, group: Group): void => {
    thread ??= startThread();
    const key = keys.signer('evidence', clock());
    const statement = statementFor(rows.length);
    thread.send(
      {
        group: ++last,
        rows,
        areNew,
        kid: key.kid,
        ...(thread.isNew(key.kid) && { key: { kid: key.kid, privateKey: key.privateKey } }),
        statement: statement.name,
        ...(thread.isNew(statement.name) && { newStatement: statement }),
      },
      group,
    );
  };

  const writeHere = async (
    by: RowAppender,
    rows: readonly AuditRow[],
    areNew: boolean,
  ): Promise<ReadonlySet<string>> => {
    isBusyHere = true;
    try {
      const key = keys.signer('evidence', clock());
      return new Set(await by.append(rows, key, statementFor(rows.length), areNew));
    } finally {
      isBusyHere = false;
    }
  };

  const write: RowWriter['write'] = (rows, areNew) => {
    if (rows.length === 1 && appender && !isBusyHere && !thread?.groups.size)
      return { accepted: Promise.resolve(), written: writeHere(appender, rows, areNew) };
    const { promise: written, resolve, reject } = Promise.withResolvers<ReadonlySet<string>>();
    const settled = written.catch(() => {});
    const accepted = store
      .exclusively(async () => {
        send(rows, areNew, { rows, resolve, reject });
        await settled;
      })
      .catch(reject);
    return { accepted, written };
  };

  const measure = async (rows: number, written: Promise<unknown>): Promise<void> => {
    const began = performance.now();
    const isWritten = await written.then(
      () => true,
      () => false,
    );
    metrics.auditGroup(rows, performance.now() - began, isWritten);
  };

  return {
    write: (rows, areNew) => {
      const group = write(rows, areNew);
      void measure(rows.length, group.written);
      return group;
    },
    close: async () => {
      const last = appender;
      appender = undefined;
      await Promise.all([thread?.close(), last?.close()]);
    },
  };
}

type Thread = {
  groups: ReadonlyMap<number, Group>;
  /** Whether this name was not sent to the thread yet; keys and statements are sent once per thread. */
  isNew(name: string): boolean;
  send(message: Exclude<ToThread, 'close'>, group: Group): void;
  close(): Promise<void>;
};

function runThread(workerData: ThreadData, onEnd: () => void): Thread {
  const worker = new Worker(THREAD, { workerData, resourceLimits: { maxYoungGenerationSizeMb: 8 } });
  // Pending requests keep the process alive, so the worker need not.
  worker.unref();
  const groups = new Map<number, Group>();
  const sentNames = new Set<string>();
  let failure: Error | undefined;
  const ended = new Promise<void>((resolve) => {
    worker.once('error', (error) => {
      failure = error as Error;
    });
    worker.once('exit', () => {
      onEnd();
      const cause = failure && { cause: failure };
      for (const { reject } of groups.values()) reject(new Error('The recording thread has ended.', cause));
      groups.clear();
      resolve();
    });
  });
  worker.on('message', (message: FromThread) => {
    const group = groups.get(message.group);
    if (!group) return;
    groups.delete(message.group);
    if (message.step === 'durable') group.resolve(new Set(message.ids ?? group.rows.map(({ id }) => id)));
    else group.reject(new (message.rowFault ? RowFault : Error)(message.message));
  });
  return {
    groups,
    isNew: (name) => sentNames.size < sentNames.add(name).size,
    send: (message, group) => {
      worker.postMessage(message);
      groups.set(message.group, group);
    },
    close: async () => {
      worker.ref();
      worker.postMessage('close' satisfies ToThread);
      await ended;
    },
  };
}
