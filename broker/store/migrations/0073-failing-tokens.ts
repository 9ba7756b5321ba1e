import type { Kysely } from 'kysely';

/** Why a connection whose tokens are issued without a person has got none lately, as JSON; null: the last request succeeded, or there was none. */
export async function failingTokens(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('connections').addColumn('failing', 'text').execute();
}
