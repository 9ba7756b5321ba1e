import { type Kysely, sql } from 'kysely';

/** Child identities: how many of an agent's children live, counted where whoever issues one more has to pass. */
export async function children(db: Kysely<unknown>): Promise<void> {
  await sql`alter table agents add column live_children integer not null default 0 check (live_children >= 0)`.execute(
    db,
  );
}
