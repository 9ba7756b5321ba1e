/**
 * The thread that writes audit rows: hashes and signs what is final, then commits group after group. It takes a third of the
 * work of a call off the thread that answers, and the disk is never waited for there.
 */
import type { KeyObject } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { createCompactSigner } from '../crypto/jws.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import { type AppendStatement, type AppendTo, openAppender } from '../store/appender.ts';
import { AUDIT_COLUMNS, type AuditRow } from '../store/audit.ts';
import { isRowFault, RowFault } from '../store/row-fault.ts';
import { type ReceiptIssuer, signRow } from './receipt.ts';

export type ThreadData = { appendTo: AppendTo; issuer: ReceiptIssuer };

/** A group in the order of AUDIT_COLUMNS. What was told once (a key, a statement) is not told again. */
export type GroupMessage = {
  group: number;
  rows: unknown[][];
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
const appender = openAppender(appendTo);
const sign = createCompactSigner();
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

async function write({ group, rows, kid, key, statement, newStatement }: GroupMessage): Promise<void> {
  if (key) keys.set(kid, key as SigningKey);
  if (newStatement) statements.set(statement, newStatement);
  const signed = rows.map((values) => signedValues(values, keys.get(kid)!));
  const ids = await appender.append(statements.get(statement)!, signed);
  tell({ group, step: 'durable', ...(ids.length < rows.length && { ids }) });
}

/** An intent is signed when it has an outcome; a row that was signed elsewhere stays as it is. */
function signedValues(values: unknown[], key: SigningKey): unknown[] {
  const row = Object.fromEntries(AUDIT_COLUMNS.map((column, at) => [column, values[at]])) as AuditRow;
  if (row.state !== 'final' || row.receipt !== null) return values;
  try {
    signRow(row, key, sign, issuer);
  } catch (error) {
    // A value without a JSON text: no later try will find one.
    throw new RowFault(`A row cannot be signed: ${(error as Error).message}`, { cause: error });
  }
  return AUDIT_COLUMNS.map((column) => row[column]);
}
