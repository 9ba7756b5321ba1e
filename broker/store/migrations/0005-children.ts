import { type Kysely, sql } from 'kysely';

/** Child agents: the number of an agent's live children, counted in the parent's row, which every creation of a child updates. */
export async function children(db: Kysely<unknown>): Promise<void> {
  await sql`alter table agents add column live_children integer not null default 0 check (live_children >= 0)`.execute(
    db,
  );
  // An agent may have had very many children of which few are live: listing the live ones must not scan all of them.
  await sql`create index agents_children on agents (parent_id, status, expires_at)
    where parent_id is not null`.execute(db);
  await sql`create index agents_children_of_organisation on agents (organisation_id, expires_at)
    where parent_id is not null`.execute(db);
  await sql`create index agents_eldest on agents (organisation_id, created_at, id)
    where parent_id is null`.execute(db);
}
