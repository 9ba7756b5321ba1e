import type { Kysely } from 'kysely';

/**
 * From now on a row has its receipt's signature only, in `receipt`; the rest is derived from its columns. Rows that are
 * there keep the whole receipt. The column stays text and keeps its check, because SQLite could change neither without
 * writing the whole table again.
 */
export async function derivedReceipts(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('audit_rows').addColumn('receipt_format', 'integer').execute();
  await db.schema.alterTable('audit_rows').addColumn('receipt_issuer', 'text').execute();
}
