import { type Kysely, sql } from 'kysely';

/** Whether a bootstrap token may replace the agent's existing key. Tokens created earlier for an agent with a key may. */
export async function rotatingTokens(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('one_time_tokens')
    .addColumn('rotates', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await sql`update one_time_tokens set rotates = 1
    where kind = 'bootstrap' and used_at is null and subject in (select id from agents where public_key_pem is not null)`.execute(
    db,
  );
}
