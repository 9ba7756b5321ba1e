import { type Kysely, sql } from 'kysely';

/** Pages of the tokens of people, oldest first, and their counts, without reading the sealed tokens. */
export async function listedPersonTokens(db: Kysely<unknown>): Promise<void> {
  await sql`create index person_tokens_listed
    on person_tokens (organisation_id, standing, created_at, id, platform_id, connection_id, status)`.execute(db);
}
