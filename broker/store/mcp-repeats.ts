/** Calls of MCP clients whose answer nobody has yet, for all replicas. */
import type { McpRepeatTable } from './schema.ts';
import type { Db } from './store.ts';

type Place = Pick<McpRepeatTable, 'organisation_id' | 'agent_id'>;

/** The call with this hash that is under way, or undefined. */
export async function findMcpRepeat(
  db: Db,
  of: Place & { hash: string },
  now: number,
): Promise<McpRepeatTable | undefined> {
  return await db
    .selectFrom('mcp_repeats')
    .selectAll()
    .where('organisation_id', '=', of.organisation_id)
    .where('agent_id', '=', of.agent_id)
    .where('hash', '=', of.hash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** Remembers a call, unless one with its hash is under way; then that one stays. */
export async function putMcpRepeat(db: Db, repeat: McpRepeatTable, now: number): Promise<void> {
  const { organisation_id: _organisation, agent_id: _agent, hash: _hash, ...news } = repeat;
  await db
    .insertInto('mcp_repeats')
    .values(repeat)
    .onConflict((c) =>
      c.columns(['organisation_id', 'agent_id', 'hash']).doUpdateSet(news).where('mcp_repeats.expires_at', '<=', now),
    )
    .execute();
}

/** It is held now, as this approval; remembered until `expires_at`. */
export async function holdMcpRepeat(
  db: Db,
  of: Place & { hash: string },
  held: Pick<McpRepeatTable, 'approval_id' | 'expires_at'>,
): Promise<void> {
  await db
    .updateTable('mcp_repeats')
    .set(held)
    .where('organisation_id', '=', of.organisation_id)
    .where('agent_id', '=', of.agent_id)
    .where('hash', '=', of.hash)
    .execute();
}

/** Forgets a call, by its hash or by the approval that it waited for. */
export async function endMcpRepeat(db: Db, of: Place & ({ hash: string } | { approvalId: string })): Promise<void> {
  const [column, value] = 'hash' in of ? (['hash', of.hash] as const) : (['approval_id', of.approvalId] as const);
  await db
    .deleteFrom('mcp_repeats')
    .where('organisation_id', '=', of.organisation_id)
    .where('agent_id', '=', of.agent_id)
    .where(column, '=', value)
    .execute();
}

/** Forgets calls that are over. */
export async function purgeMcpRepeats(db: Db, now: number): Promise<void> {
  await db.deleteFrom('mcp_repeats').where('expires_at', '<=', now).execute();
}
