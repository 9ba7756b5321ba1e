import type { Kysely } from 'kysely';

/**
 * New rows store only the receipt's signature in `receipt`; the rest is derived from their columns. Existing rows keep the whole receipt.
 * The column stays text and keeps its check, because SQLite could change neither without rewriting the whole table.
 */
export async function derivedReceipts(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('audit_rows').addColumn('receipt_format', 'integer').execute();
  await db.schema.alterTable('audit_rows').addColumn('receipt_issuer', 'text').execute();
}
