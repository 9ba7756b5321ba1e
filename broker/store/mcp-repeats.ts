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

/**
 * Remembers a call and answers it. When one with its hash is under way, it is that one, which is then remembered longer than
 * it was: until `repeat.expires_at`, or a millisecond more. One statement, so that of several at once one is the first.
 */
export async function beginMcpRepeat(db: Db, repeat: McpRepeatTable, now: number): Promise<McpRepeatTable> {
  return await db
    .insertInto('mcp_repeats')
    .values(repeat)
    .onConflict((c) =>
      c.columns(['organisation_id', 'agent_id', 'hash']).doUpdateSet((eb) => {
        const unlessOver = (column: 'key' | 'reason' | 'approval_id') =>
          eb
            .case()
            .when('mcp_repeats.expires_at', '<=', now)
            .then(eb.ref(`excluded.${column}` as 'excluded.key'))
            .else(eb.ref(`mcp_repeats.${column}` as 'mcp_repeats.key'))
            .end();
        return {
          key: unlessOver('key'),
          reason: unlessOver('reason'),
          approval_id: unlessOver('approval_id'),
          expires_at: eb
            .case()
            .when('mcp_repeats.expires_at', '<', eb.ref('excluded.expires_at'))
            .then(eb.ref('excluded.expires_at'))
            .else(eb('mcp_repeats.expires_at', '+', 1))
            .end(),
        };
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** It is held now, as this approval; remembered until `expires_at`. Another call with its hash is left alone. */
export async function holdMcpRepeat(
  db: Db,
  of: Place & { hash: string; key: string },
  held: Pick<McpRepeatTable, 'approval_id' | 'expires_at'>,
): Promise<void> {
  await db
    .updateTable('mcp_repeats')
    .set(held)
    .where((eb) => eb.and(of))
    .execute();
}

/** Forgets a call, by its hash and key (and when it would have been over), or by the approval that it waited for. */
export async function endMcpRepeat(
  db: Db,
  of: Place & ({ hash: string; key: string; expires_at?: number } | { approval_id: string }),
): Promise<void> {
  await db
    .deleteFrom('mcp_repeats')
    .where((eb) => eb.and(of))
    .execute();
}

/** Forgets calls that are over. */
export async function purgeMcpRepeats(db: Db, now: number): Promise<void> {
  await db.deleteFrom('mcp_repeats').where('expires_at', '<=', now).execute();
}
