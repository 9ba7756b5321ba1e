/**
 * The thread that writes audit rows: hashes and signs what is final, then commits group after group. It takes a third of the
 * work of a call off the thread that answers, and the disk is never waited for there.
 */
import type { KeyObject } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { SigningKey } from '../crypto/key-set.ts';
import type { AppendStatement, AppendTo } from '../store/appender.ts';
import type { AuditRow } from '../store/audit.ts';
import { isRowFault } from '../store/row-fault.ts';
import { openRowAppender } from './row-appender.ts';

export type ThreadData = { appendTo: AppendTo; issuer: string };

/** A group. What was told once (a key, a statement) is not told again. */
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

/** `ids`: those that were written, undefined for all. */
export type FromThread = { group: number } & (
  | { step: 'durable'; ids?: string[] }
  | { step: 'failed'; message: string; rowFault: boolean }
);

const port = parentPort!;
const { appendTo, issuer } = workerData as ThreadData;
const appender = openRowAppender(appendTo, issuer);
const keys = new Map<string, SigningKey>();
const statements = new Map<string, AppendStatement>();
const tell = (message: FromThread): void => port.postMessage(message);

port.on('message', (message: ToThread) => {
  if (message === 'close') void appender.close().finally(() => port.close());
  else
    void write(message).catch((error: unknown) => {
      const text = error instanceof Error ? error.message : String(error);
      tell({ group: message.group, step: 'failed', message: text, rowFault: isRowFault(error) });
    });
});

async function write({ group, rows, areNew, kid, key, statement, newStatement }: GroupMessage): Promise<void> {
  if (key) keys.set(kid, key as SigningKey);
  if (newStatement) statements.set(statement, newStatement);
  const ids = await appender.append(rows, keys.get(kid)!, statements.get(statement)!, areNew);
  tell({ group, step: 'durable', ...(ids.length < rows.length && { ids }) });
}
