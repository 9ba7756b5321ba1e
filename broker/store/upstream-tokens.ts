/** Access tokens that the broker requests by itself, by purpose, with the claim on requesting the next one. */

import type { Db } from './store.ts';
import type { UpstreamTokenTable } from './tables/connections.ts';

/** `purpose`: a hash of everything that the token is for. */
export type TokenPlace = { organisationId: string; connectionId: string; purpose: string };

/** Returns the row of this purpose, whatever its state; undefined when there is none. */
export async function findUpstreamToken(db: Db, place: TokenPlace): Promise<UpstreamTokenTable | undefined> {
  return await db
    .selectFrom('upstream_tokens')
    .selectAll()
    .where('organisation_id', '=', place.organisationId)
    .where('connection_id', '=', place.connectionId)
    .where('purpose', '=', place.purpose)
    .executeTakeFirst();
}

/**
 * Claims requesting a token until `until` (a lease). Returns true to one caller; false: there is a valid token, or another process is requesting
 * one. `id`: id for a new row. `refused`: id of a token that the platform has refused, whatever its times say.
 */
export async function claimUpstreamToken(
  db: Db,
  place: TokenPlace,
  claim: { id: string; name: string; now: number; until: number; refused: string | undefined },
): Promise<boolean> {
  const { name, now, until } = claim;
  const claimed = await db
    .insertInto('upstream_tokens')
    .values({
      organisation_id: place.organisationId,
      connection_id: place.connectionId,
      purpose: place.purpose,
      id: claim.id,
      token: null,
      refresh_at: null,
      expires_at: until,
      claim: name,
      claim_until: until,
    })
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'connection_id', 'purpose'])
        .doUpdateSet({ claim: name, claim_until: until, expires_at: until, token: null, refresh_at: null })
        .where((eb) =>
          eb.and([
            eb.or([eb('upstream_tokens.claim_until', 'is', null), eb('upstream_tokens.claim_until', '<=', now)]),
            eb.or([
              eb('upstream_tokens.refresh_at', 'is', null),
              eb('upstream_tokens.refresh_at', '<=', now),
              eb('upstream_tokens.id', '=', claim.refused ?? ''),
            ]),
          ]),
        ),
    )
    .returning('id')
    .executeTakeFirst();
  return claimed !== undefined;
}

/** Extends a claim to `until`, unless it was lost. */
export async function renewUpstreamToken(
  db: Db,
  place: TokenPlace,
  { name, until }: { name: string; until: number },
): Promise<void> {
  await db
    .updateTable('upstream_tokens')
    .set({ claim_until: until, expires_at: until })
    .where('organisation_id', '=', place.organisationId)
    .where('connection_id', '=', place.connectionId)
    .where('purpose', '=', place.purpose)
    .where('claim', '=', name)
    .execute();
}

/** Stores the claimed token. False: the claim was lost, or the connection was deleted. */
export async function storeUpstreamToken(
  db: Db,
  place: TokenPlace,
  claim: string,
  token: Pick<UpstreamTokenTable, 'id' | 'token' | 'refresh_at' | 'expires_at'>,
): Promise<boolean> {
  const stored = await db
    .updateTable('upstream_tokens')
    .set({ ...token, claim: null, claim_until: null })
    .where('organisation_id', '=', place.organisationId)
    .where('connection_id', '=', place.connectionId)
    .where('purpose', '=', place.purpose)
    .where('claim', '=', claim)
    .returning('id')
    .executeTakeFirst();
  return stored !== undefined;
}

/** Releases a claim without a token, so that the next caller can try. */
export async function releaseUpstreamToken(db: Db, place: TokenPlace, claim: string): Promise<void> {
  await db
    .deleteFrom('upstream_tokens')
    .where('organisation_id', '=', place.organisationId)
    .where('connection_id', '=', place.connectionId)
    .where('purpose', '=', place.purpose)
    .where('claim', '=', claim)
    .execute();
}

/** Deletes all tokens of a connection and returns them, so that they can be revoked. */
export async function deleteUpstreamTokens(
  db: Db,
  { organisationId, connectionId }: Pick<TokenPlace, 'organisationId' | 'connectionId'>,
): Promise<UpstreamTokenTable[]> {
  return await db
    .deleteFrom('upstream_tokens')
    .where('organisation_id', '=', organisationId)
    .where('connection_id', '=', connectionId)
    .returningAll()
    .execute();
}

/** Deletes tokens that expired before `before`, and expired claims without a token. */
export async function purgeUpstreamTokens(db: Db, before: number): Promise<void> {
  await db.deleteFrom('upstream_tokens').where('expires_at', '<', before).execute();
}
