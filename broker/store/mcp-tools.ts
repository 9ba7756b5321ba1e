/** Tools of MCP servers: accepted and currently offered definitions. */
import type { ToolEffect } from '../policy/tool.ts';
import type { Db } from './store.ts';
import type { McpToolTable } from './tables/platforms.ts';

/** An MCP server of a platform, by its address. */
export type ToolPlace = { organisationId: string; platformId: string; server: string };

/** Rows per statement: 13 parameters each, of SQLite's maximum of 32,766. */
const GROUP = 500;

const at = ({ organisationId, platformId, server }: ToolPlace) => ({
  organisation_id: organisationId,
  platform_id: platformId,
  server,
});

/** All known tools of a server, by name. */
export async function listTools(db: Db, place: ToolPlace): Promise<McpToolTable[]> {
  return await db
    .selectFrom('tools')
    .selectAll()
    .where((eb) => eb.and(at(place)))
    .orderBy('name')
    .execute();
}

const KNOWN = ['name', 'accepted_hash', 'offered_hash', 'offered_at', 'effect'] as const;
export type KnownTool = Pick<McpToolTable, (typeof KNOWN)[number]>;

/** All known tools of a server without their definitions, which may be megabytes, for the comparison of a list at every call. */
export async function listKnownTools(db: Db, place: ToolPlace): Promise<KnownTool[]> {
  return await db
    .selectFrom('tools')
    .select(KNOWN)
    .where((eb) => eb.and(at(place)))
    .execute();
}

export type UsableTool = Pick<McpToolTable, 'platform_id' | 'name' | 'accepted_hash' | 'effect'>;

/** Returns the tools of these servers of one organisation whose offered definition is the accepted one, in a fixed order. */
export async function listUsableTools(db: Db, places: readonly ToolPlace[]): Promise<UsableTool[]> {
  return await db
    .selectFrom('tools')
    .select(['platform_id', 'name', 'accepted_hash', 'effect'])
    .where((eb) => eb.or(places.map((place) => eb.and(at(place)))))
    .whereRef('accepted_hash', '=', 'offered_hash')
    .orderBy('platform_id')
    .orderBy('name')
    .execute();
}

export async function findTool(db: Db, place: ToolPlace, name: string): Promise<McpToolTable | undefined> {
  return await db
    .selectFrom('tools')
    .selectAll()
    .where((eb) => eb.and({ ...at(place), name }))
    .executeTakeFirst();
}

/** Whether any tool of a server is known. */
export async function hasTools(db: Db, place: ToolPlace): Promise<boolean> {
  const row = await db
    .selectFrom('tools')
    .select('name')
    .where((eb) => eb.and(at(place)))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Stores the offered tools: inserts new ones, and updates only the offered definition of known ones. */
export async function putOffered(db: Db, tools: readonly McpToolTable[]): Promise<void> {
  for (let i = 0; i < tools.length; i += GROUP)
    await db
      .insertInto('tools')
      .values(tools.slice(i, i + GROUP))
      .onConflict((c) =>
        c.columns(['organisation_id', 'platform_id', 'server', 'name']).doUpdateSet((eb) => ({
          offered: eb.ref('excluded.offered'),
          offered_hash: eb.ref('excluded.offered_hash'),
          offered_at: eb.ref('excluded.offered_at'),
        })),
      )
      .execute();
}

/** Deletes tools by name. */
export async function forgetTools(db: Db, place: ToolPlace, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  await db
    .deleteFrom('tools')
    .where((eb) => eb.and(at(place)))
    .where('name', 'in', names)
    .execute();
}

/** Accepts a tool as offered, if that is still the definition that the owner saw. Returns the tool; undefined: it has changed since. */
export async function acceptOffered(
  db: Db,
  place: ToolPlace,
  tool: { name: string; hash: string; by: string; effect: ToolEffect; effectBy: string | null },
  now: number,
): Promise<McpToolTable | undefined> {
  return await db
    .updateTable('tools')
    .set((eb) => ({
      accepted: eb.ref('offered'),
      accepted_hash: eb.ref('offered_hash'),
      accepted_at: now,
      accepted_by: tool.by,
      effect: tool.effect,
      effect_by: tool.effectBy,
    }))
    .where((eb) => eb.and({ ...at(place), name: tool.name, offered_hash: tool.hash }))
    .returningAll()
    .executeTakeFirst();
}
