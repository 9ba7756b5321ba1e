/** Pending OAuth authorization code flows, by the hash of `state`; each is consumed once. */

import type { Db } from './store.ts';
import type { OAuthFlowTable } from './tables/connections.ts';

export async function putOAuthFlow(db: Db, flow: OAuthFlowTable): Promise<void> {
  await db.insertInto('oauth_flows').values(flow).execute();
}

/** The flow of this state, unless it has expired; or undefined. */
export async function findOAuthFlow(db: Db, stateHash: string, now: number): Promise<OAuthFlowTable | undefined> {
  return await db
    .selectFrom('oauth_flows')
    .selectAll()
    .where('state_hash', '=', stateHash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** Consumes a flow. Returns true to exactly one caller. */
export async function useOAuthFlow(db: Db, stateHash: string): Promise<boolean> {
  const used = await db
    .deleteFrom('oauth_flows')
    .where('state_hash', '=', stateHash)
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

/** Deletes flows that expired before `before`. */
export async function purgeOAuthFlows(db: Db, before: number): Promise<void> {
  await db.deleteFrom('oauth_flows').where('expires_at', '<', before).execute();
}
