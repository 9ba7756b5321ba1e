/** Hashes, signs and commits groups of audit rows, in whichever thread. */
import { createCompactSigner } from '../crypto/jws.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import { type AppendStatement, type AppendTo, openAppender } from '../store/appender.ts';
import { AUDIT_COLUMNS, type AuditRow } from '../store/audit.ts';
import { RowFault } from '../store/row-fault.ts';
import { type ReceiptIssuer, signRow } from './receipt.ts';

export type RowAppender = {
  /**
   * `rows`: values in the order of AUDIT_COLUMNS. Signs those that are final and writes all, or none. Resolves when they are
   * durable, with the ids that were written. `areNew`: none of them is there yet, as far as anybody knows.
   */
  append(
    rows: readonly (readonly unknown[])[],
    key: SigningKey,
    statement: AppendStatement,
    areNew: boolean,
  ): Promise<string[]>;
  close(): Promise<void>;
};

export function openRowAppender(to: AppendTo, issuer: ReceiptIssuer): RowAppender {
  const appender = openAppender(to);
  const sign = createCompactSigner();

  /** An intent is signed when it has an outcome; a row that was signed elsewhere stays as it is. */
  const signedValues = (values: readonly unknown[], key: SigningKey): readonly unknown[] => {
    const row = Object.fromEntries(AUDIT_COLUMNS.map((column, at) => [column, values[at]])) as AuditRow;
    if (row.state !== 'final' || row.receipt !== null) return values;
    try {
      signRow(row, key, sign, issuer);
    } catch (error) {
      // A value without a JSON text: no later try will find one.
      throw new RowFault(`A row cannot be signed: ${(error as Error).message}`, { cause: error });
    }
    return AUDIT_COLUMNS.map((column) => row[column]);
  };

  return {
    append: async (rows, key, statement, areNew) =>
      await appender.append(
        statement,
        rows.map((values) => signedValues(values, key)),
        areNew,
      ),
    close: async () => await appender.close(),
  };
}
