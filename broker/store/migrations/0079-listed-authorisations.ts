import { type Kysely, sql } from 'kysely';

/** Pages of the authorisations of MCP clients, newest first. */
export async function listedAuthorisations(db: Kysely<unknown>): Promise<void> {
  await sql`create index mcp_authorisations_listed
    on mcp_authorisations (organisation_id, created_at desc, id)`.execute(db);
}
