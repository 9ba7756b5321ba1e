import { type Kysely, sql } from 'kysely';

/** Child identities: how many of an agent's children live, counted where whoever issues one more has to pass. */
export async function children(db: Kysely<unknown>): Promise<void> {
  await sql`alter table agents add column live_children integer not null default 0 check (live_children >= 0)`.execute(
    db,
  );
  // An agent may have had very many children, of which few live: whoever asks for those must not go through all of them.
  await sql`create index agents_children on agents (parent_id, status, expires_at)
    where parent_id is not null`.execute(db);
  await sql`create index agents_children_of_organisation on agents (organisation_id, expires_at)
    where parent_id is not null`.execute(db);
  await sql`create index agents_eldest on agents (organisation_id, created_at, id)
    where parent_id is null`.execute(db);
}
