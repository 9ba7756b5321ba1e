/**
 * The worker thread that writes audit rows: hashes and signs final rows, then commits batches. It moves a third of the CPU time of a call
 * off the main thread, which never waits for the disk.
 */

import type { KeyObject } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { SigningKey } from '../crypto/key-set.ts';
import { present } from '../runtime/present.ts';
import type { AppendStatement, AppendTo } from '../store/appender.ts';
import type { AuditRow } from '../store/audit.ts';
import { isRowFault } from '../store/row-fault.ts';
import { openRowAppender } from './row-appender.ts';

export type ThreadData = { appendTo: AppendTo; issuer: string };

/** A batch of rows. Each key and each statement is sent once per thread. */
export type GroupMessage = {
  group: number;
  rows: readonly AuditRow[];
  areNew: boolean;
  kid: string;
  key?: { kid: string; privateKey: KeyObject };
  statement: string;
  newStatement?: AppendStatement;
};
export type ToThread = GroupMessage | 'close';

/** `ids`: the rows that were written; undefined: all of them. */
export type FromThread = { group: number } & (
  | { step: 'durable'; ids?: string[] }
  | { step: 'failed'; message: string; rowFault: boolean }
);

const port = present(parentPort, 'parent of this thread');
const { appendTo, issuer } = workerData as ThreadData;
const appender = openRowAppender(appendTo, issuer);
const keys = new Map<string, SigningKey>();
const statements = new Map<string, AppendStatement>();
const report = (message: FromThread): void => port.postMessage(message);

port.on('message', (message: ToThread) => {
  if (message === 'close') void appender.close().finally(() => port.close());
  else
    void write(message).catch((error: unknown) => {
      const text = error instanceof Error ? error.message : String(error);
      report({ group: message.group, step: 'failed', message: text, rowFault: isRowFault(error) });
    });
});

async function write({ group, rows, areNew, kid, key, statement, newStatement }: GroupMessage): Promise<void> {
  if (key) keys.set(kid, key as SigningKey);
  if (newStatement) statements.set(statement, newStatement);
  const ids = await appender.append(
    rows,
    present(keys.get(kid), 'key'),
    present(statements.get(statement), 'statement'),
    areNew,
  );
  report({ group, step: 'durable', ...(ids.length < rows.length && { ids }) });
}
