/** The tokens of connections that a person made through OAuth: who refreshes them, and what takes their place. */
import type { ConnectionTable } from './schema.ts';
import type { Db } from './store.ts';

export type ConnectionPlace = { organisationId: string; id: string };

/** Everything of a connection that tokens are. Null scopes: what the upstream granted stays as it is known. */
export type NewTokens = {
  credential: Buffer;
  refreshToken: Buffer | null;
  tokenId: string;
  oauth: string;
  upstreamScopes: string | null;
};

/**
 * Claims the refresh of exactly these tokens until `until`. One caller gets the connection, all others undefined: the
 * tokens were replaced, cannot be refreshed, or somebody else is at it. `abandoned`: takes the place of an attempt whose
 * time is over and of which nobody knows what became.
 */
export async function claimRefresh(
  db: Db,
  { organisationId, id }: ConnectionPlace,
  claim: { tokenId: string; name: string; now: number; until: number; abandoned: boolean },
): Promise<ConnectionTable | undefined> {
  return await db
    .updateTable('connections')
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

/** Puts refreshed tokens in the place of the ones that were claimed. False: the claim is not ours any more. */
export async function storeRefreshed(
  db: Db,
  { organisationId, id }: ConnectionPlace,
  claim: string,
  tokens: NewTokens & { status: ConnectionTable['status'] },
): Promise<boolean> {
  const stored = await db
    .updateTable('connections')
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

/** Gives a claim back; nobody tries again before `until`. `oauth`: what is known of the tokens now, if that changed. */
export async function releaseRefresh(
  db: Db,
  { organisationId, id }: ConnectionPlace,
  claim: string,
  { until, oauth }: { until: number; oauth?: string },
): Promise<void> {
  await db
    .updateTable('connections')
    .set({ refresh_claim: null, refresh_claim_until: until, ...(oauth !== undefined && { oauth }) })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('refresh_claim', '=', claim)
    .execute();
}

/** Gives a connection the tokens of a new consent. Whoever refreshes the older ones has lost them. */
export const putTokens = (db: Db, place: ConnectionPlace, tokens: NewTokens): Promise<ConnectionTable | undefined> =>
  replaceTokens(db, place, tokens);

/** Forgets a connection's tokens; it stays, without a credential. Answers it as it is now. */
export const forgetTokens = (db: Db, place: ConnectionPlace): Promise<ConnectionTable | undefined> =>
  replaceTokens(db, place, { credential: null, refreshToken: null, tokenId: null, oauth: null, upstreamScopes: null });

async function replaceTokens(
  db: Db,
  { organisationId, id }: ConnectionPlace,
  tokens: { [Part in keyof NewTokens]: NewTokens[Part] | null },
): Promise<ConnectionTable | undefined> {
  return await db
    .updateTable('connections')
    .set((eb) => ({
      credential: tokens.credential,
      refresh_token: tokens.refreshToken,
      token_id: tokens.tokenId,
      oauth: tokens.oauth,
      upstream_scopes: tokens.upstreamScopes,
      secret_reference: null,
      status: 'active' as const,
      refresh_claim: null,
      refresh_claim_until: null,
      revision: eb('revision', '+', 1),
    }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}
