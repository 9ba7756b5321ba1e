import { type Kysely, sql } from 'kysely';

/** Tools of MCP servers: the accepted definition, and the one offered last. */
export async function mcpTools(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('tools')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    // Address of the server: tools of different servers are distinct, and a server keeps its tools when it is set again.
    .addColumn('server', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('accepted', 'text')
    .addColumn('accepted_hash', 'text')
    .addColumn('accepted_at', 'bigint')
    .addColumn('accepted_by', 'text')
    .addColumn('offered', 'text', (c) => c.notNull())
    .addColumn('offered_hash', 'text', (c) => c.notNull())
    .addColumn('offered_at', 'bigint', (c) => c.notNull())
    .addColumn('effect', 'text', (c) => c.notNull().check(sql`effect in ('reads', 'writes', 'destroys')`))
    .addColumn('effect_by', 'text')
    .addPrimaryKeyConstraint('tools_key', ['organisation_id', 'platform_id', 'server', 'name'])
    .addForeignKeyConstraint('tools_organisation', ['organisation_id'], 'organisations', ['id'])
    .addCheckConstraint(
      'tools_accepted',
      sql`(accepted is null) = (accepted_hash is null) and (accepted is null) = (accepted_at is null)`,
    )
    .execute();
}
