/** Tokens that OAuth servers issued, to a connection or to one person: refresh claims, and replacement. */

import type { Db } from './store.ts';
import type { ConnectionTable } from './tables/connections.ts';

export type ConnectionPlace = { organisationId: string; id: string };

/** Identifies the row that holds tokens: of a connection, or of one person. Both tables have the same columns for tokens. */
export type TokenRowPlace = ConnectionPlace & { table: 'connections' | 'person_tokens' };

/** The columns that both tables have. */
export type TokenRow = Pick<
  ConnectionTable,
  | 'organisation_id'
  | 'id'
  | 'credential'
  | 'refresh_token'
  | 'oauth'
  | 'token_id'
  | 'refresh_claim'
  | 'refresh_claim_until'
>;

/** Returns the row; undefined when it was deleted. */
export async function findTokens(db: Db, { table, organisationId, id }: TokenRowPlace): Promise<TokenRow | undefined> {
  return await db
    .selectFrom(table)
    .select([
      'organisation_id',
      'id',
      'credential',
      'refresh_token',
      'oauth',
      'token_id',
      'refresh_claim',
      'refresh_claim_until',
    ])
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** New values of the token columns. Null scopes: keep the stored granted scopes. */
export type NewTokens = {
  credential: Buffer;
  refreshToken: Buffer | null;
  tokenId: string;
  oauth: string;
  upstreamScopes: string | null;
};

/**
 * Claims the refresh of exactly these tokens until `until` (a lease). Returns the row to one caller, undefined to all others: the tokens were
 * replaced, cannot be refreshed, or are claimed. `abandoned`: takes over an expired claim, whose result is unknown.
 */
export async function claimRefresh(
  db: Db,
  { table, organisationId, id }: TokenRowPlace,
  claim: { tokenId: string; name: string; now: number; until: number; abandoned: boolean },
): Promise<TokenRow | undefined> {
  return await db
    .updateTable(table)
    .set({ refresh_claim: claim.name, refresh_claim_until: claim.until })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('token_id', '=', claim.tokenId)
    .where('refresh_token', 'is not', null)
    .where('refresh_claim', claim.abandoned ? 'is not' : 'is', null)
    .where((eb) => eb.or([eb('refresh_claim_until', 'is', null), eb('refresh_claim_until', '<=', claim.now)]))
    .returningAll()
    .executeTakeFirst();
}

/** Replaces the claimed tokens by the refreshed ones. False: the claim was lost. */
export async function storeRefreshed(
  db: Db,
  { table, organisationId, id }: TokenRowPlace,
  claim: string,
  tokens: NewTokens & { status: ConnectionTable['status'] },
): Promise<boolean> {
  const stored = await db
    .updateTable(table)
    .set({
      credential: tokens.credential,
      refresh_token: tokens.refreshToken,
      token_id: tokens.tokenId,
      oauth: tokens.oauth,
      status: tokens.status,
      refresh_claim: null,
      refresh_claim_until: null,
      ...(tokens.upstreamScopes !== null && { upstream_scopes: tokens.upstreamScopes }),
    })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('refresh_claim', '=', claim)
    .returning('id')
    .executeTakeFirst();
  return stored !== undefined;
}

/** Releases a claim with a back-off until `until`. `oauth`: the tokens' metadata, if it changed. */
export async function releaseRefresh(
  db: Db,
  { table, organisationId, id }: TokenRowPlace,
  claim: string,
  { until, oauth }: { until: number; oauth?: string },
): Promise<void> {
  await db
    .updateTable(table)
    .set({ refresh_claim: null, refresh_claim_until: until, ...(oauth !== undefined && { oauth }) })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('refresh_claim', '=', claim)
    .execute();
}

/** Sets whether a connection has got no token for a while; tokens of one person concern no owner. */
export async function setAttention(
  db: Db,
  { table, organisationId, id }: TokenRowPlace,
  attention: ConnectionTable['attention'],
): Promise<void> {
  if (table !== 'connections') return;
  await db
    .updateTable(table)
    .set({ attention })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('attention', '<>', attention)
    .execute();
}

/** Ends the refresh claims of a dead process, so that another process can take them over. */
export async function endRefreshClaims(db: Db, instanceId: string): Promise<void> {
  for (const table of ['connections', 'person_tokens'] as const)
    await db
      .updateTable(table)
      .set({ refresh_claim_until: 0 })
      .where('refresh_claim', 'like', `${instanceId}/%`)
      .execute();
}

/**
 * Stores the tokens of a new consent. A concurrent refresh of the older tokens loses its claim. Undefined: the connection was deleted, or was
 * moved to another platform, where these tokens are not valid.
 */
export const putTokens = (
  db: Db,
  place: ConnectionPlace & { platformId: string },
  tokens: NewTokens,
  now: number,
): Promise<ConnectionTable | undefined> => replaceTokens(db, place, tokens, now);

/** Deletes a connection's tokens; the connection stays, without a credential. Returns it. */
export const forgetTokens = (db: Db, place: ConnectionPlace, now: number): Promise<ConnectionTable | undefined> => {
  const none = { credential: null, refreshToken: null, tokenId: null, oauth: null, upstreamScopes: null };
  return replaceTokens(db, place, none, now);
};

async function replaceTokens(
  db: Db,
  { organisationId, id, platformId }: ConnectionPlace & { platformId?: string },
  tokens: { [Part in keyof NewTokens]: NewTokens[Part] | null },
  now: number,
): Promise<ConnectionTable | undefined> {
  return await db
    .updateTable('connections')
    .set((eb) => ({
      credential: tokens.credential,
      credential_replaced_at: now,
      refresh_token: tokens.refreshToken,
      token_id: tokens.tokenId,
      oauth: tokens.oauth,
      upstream_scopes: tokens.upstreamScopes,
      secret_reference: null,
      failing: null,
      attention: 0 as const,
      status: 'active' as const,
      refresh_claim: null,
      refresh_claim_until: null,
      revision: eb('revision', '+', 1),
    }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .$if(platformId !== undefined, (qb) => qb.where('platform_id', '=', platformId ?? ''))
    .returningAll()
    .executeTakeFirst();
}
