/** Reads a broker's audit directly from its store: counts rows and verifies their receipts. */

import { createPublicKey, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../broker/audit/receipt.ts';
import { verifyCompact } from '../broker/crypto/jws.ts';
import { present } from '../broker/runtime/present.ts';
import type { AuditRow } from '../broker/store/audit.ts';

export type Audit = {
  count(): Promise<number>;
  /** Transactions of the database so far; NaN on SQLite, which does not count them. */
  transactions(): Promise<number>;
  /** Verifies every row with this key set (RFC 7517): the signature, the id and the hash of the stored columns. */
  verify(keySet: { keys: { kid: string }[] }): Promise<{ verified: number; failed: number }>;
};

/** Runs one statement; its parameters are `$1`, `$2` and so on. */
type Ask = (sql: string, parameters?: readonly string[]) => Promise<Record<string, unknown>[]>;

const ROWS_PER_PAGE = 2_000;
/** Keyset pagination in the order of the primary key: with an offset, each page would read all rows before it again. */
const PAGE = `select * from audit_rows where kind = 'action' and (organisation_id, id) > ($1, $2)
  order by organisation_id, id limit ${ROWS_PER_PAGE}`;

/** Opens the audit of the broker that serves this data folder or database. Takes no lock and writes nothing. */
export function openAudit(from: { dataFolder: string; databaseUrl?: string | undefined }): Audit {
  const ask = from.databaseUrl === undefined ? askSqlite(from.dataFolder) : askPostgres(from.databaseUrl);
  return {
    async count() {
      const [row] = await ask(`select count(*) as count from audit_rows where kind = 'action'`);
      return Number(present(row, 'row').count);
    },
    async transactions() {
      if (from.databaseUrl === undefined) return Number.NaN;
      const [row] = await ask(
        'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
      );
      return Number(present(row, 'row').count);
    },
    async verify(keySet) {
      const keys = new Map(keySet.keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
      const found = { verified: 0, failed: 0 };
      for (let after = ['', '']; ; ) {
        const rows = (await ask(PAGE, after)) as AuditRow[];
        for (const row of rows) found[isVerified(row, keys) ? 'verified' : 'failed']++;
        const last = rows.at(-1);
        if (last === undefined || rows.length < ROWS_PER_PAGE) return found;
        after = [last.organisation_id, last.id];
      }
    },
  };
}

function isVerified(row: AuditRow, keys: ReadonlyMap<string, KeyObject>): boolean {
  const receipt = row.state === 'final' ? receiptOf(row) : null;
  if (receipt === null) return false;
  const found = verifyCompact(receipt, keys, { typ: RECEIPT_TYPE });
  return found.ok && found.payload.jti === row.id && found.payload.row_hash === rowHash(row);
}

function askSqlite(dataFolder: string): Ask {
  const path = join(dataFolder, 'store', 'broker.db');
  return async (sql, parameters = []) => {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      // SQLite treats `$1` as a named parameter.
      return database.prepare(sql).all(Object.fromEntries(parameters.map((value, at) => [`$${at + 1}`, value])));
    } finally {
      database.close();
    }
  };
}

function askPostgres(connectionString: string): Ask {
  return async (sql, parameters = []) => {
    const types = { getTypeParser: (oid: number) => (oid === 20 ? Number : pg.types.getTypeParser(oid)) };
    const client = new pg.Client({ connectionString, types: types as pg.CustomTypesConfig });
    try {
      await client.connect();
      return (await client.query(sql, [...parameters])).rows;
    } finally {
      await client.end();
    }
  };
}
