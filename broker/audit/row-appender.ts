/** Hashes, signs and commits batches of audit rows, in any thread. */
import { createCompactSigner } from '../crypto/jws.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import type { AppendStatement, AppendTo } from '../store/appender.ts';
import type { AuditRow } from '../store/audit.ts';
import { AUDIT_COLUMNS } from '../store/audit-columns.ts';
import { openAppender } from '../store/open-appender.ts';
import { RowFault } from '../store/row-fault.ts';
import { signRow } from './receipt.ts';

export type RowAppender = {
  /**
   * Signs copies of the final rows and writes all rows, or none. Resolves when they are durable, with the ids that were written.
   * `areNew`: none of the ids is stored yet, as far as the caller knows.
   */
  append(rows: readonly AuditRow[], key: SigningKey, statement: AppendStatement, areNew: boolean): Promise<string[]>;
  close(): Promise<void>;
};

/** `issuer`: the broker's DID. */
export function openRowAppender(to: AppendTo, issuer: string): RowAppender {
  const appender = openAppender(to);
  const sign = createCompactSigner();

  /** Signs a final row that is not signed yet. */
  const signed = (row: AuditRow, key: SigningKey): AuditRow => {
    if (row.state !== 'final' || row.receipt !== null) return row;
    const copy = { ...row };
    try {
      signRow(copy, key, sign, issuer);
    } catch (error) {
      // The row cannot be serialised as JSON: a retry would fail, too.
      throw new RowFault(`A row cannot be signed: ${(error as Error).message}`, { cause: error });
    }
    return copy;
  };

  return {
    append: async (rows, key, statement, areNew) =>
      await appender.append(
        statement,
        rows.map((row) => valuesOf(signed(row, key))),
        areNew,
      ),
    close: async () => await appender.close(),
  };
}

const valuesOf = (row: AuditRow): unknown[] => AUDIT_COLUMNS.map((column) => row[column]);
