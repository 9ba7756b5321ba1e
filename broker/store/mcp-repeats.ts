/** Calls of MCP clients whose response was not delivered yet, for deduplicating retries across replicas. */

import type { Db } from './store.ts';
import type { McpRepeatTable } from './tables/calls.ts';

type Place = Pick<McpRepeatTable, 'organisation_id' | 'agent_id'>;

/** The pending call with this hash, or undefined. */
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
 * Stores a call and returns it. If a call with its hash is pending, returns that one, with its expiry extended to `repeat.expires_at`, or by
 * a millisecond. One atomic statement, so that one of concurrent callers is the first.
 */
export async function beginMcpRepeat(db: Db, repeat: McpRepeatTable, now: number): Promise<McpRepeatTable> {
  return await db
    .insertInto('mcp_repeats')
    .values(repeat)
    .onConflict((c) =>
      c.columns(['organisation_id', 'agent_id', 'hash']).doUpdateSet((eb) => {
        const unlessExpired = (column: 'key' | 'reason' | 'approval_id') =>
          eb
            .case()
            .when('mcp_repeats.expires_at', '<=', now)
            .then(eb.ref(`excluded.${column}` as 'excluded.key'))
            .else(eb.ref(`mcp_repeats.${column}` as 'mcp_repeats.key'))
            .end();
        return {
          key: unlessExpired('key'),
          reason: unlessExpired('reason'),
          approval_id: unlessExpired('approval_id'),
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

/** Marks the call as held by this approval, until `expires_at`. Does not affect another call with the same hash. */
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

/** Deletes a call, by its hash and key (and its expiry), or by its approval. */
export async function endMcpRepeat(
  db: Db,
  of: Place & ({ hash: string; key: string; expires_at?: number } | { approval_id: string }),
): Promise<void> {
  await db
    .deleteFrom('mcp_repeats')
    .where((eb) => eb.and(of))
    .execute();
}

/** Deletes expired calls. */
export async function purgeMcpRepeats(db: Db, now: number): Promise<void> {
  await db.deleteFrom('mcp_repeats').where('expires_at', '<=', now).execute();
}
