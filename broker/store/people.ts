/** People for whom agents call: the key for hashing their identities, their random ids, and their tokens. */
import type { ExpressionBuilder, Kysely } from 'kysely';
import { uuidv4 } from '../crypto/ids.ts';
import type { ConnectionPlace, NewTokens } from './oauth-tokens.ts';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { PersonKeyTable, PersonTokenTable } from './tables/people.ts';

/** Returns the organisation's hash key, sealed; undefined: it has none yet. */
export async function findPersonKey(db: Db, organisationId: string): Promise<PersonKeyTable | undefined> {
  return await db
    .selectFrom('person_keys')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .executeTakeFirst();
}

/** Stores the first key. Succeeds for one of concurrent callers; no effect for the others. */
export async function putFirstPersonKey(db: Db, key: PersonKeyTable): Promise<void> {
  await db
    .insertInto('person_keys')
    .values(key)
    .onConflict((c) => c.doNothing())
    .execute();
}

/** Returns the id of the person with this hash; undefined: no consent was started for this person. */
export async function findPersonId(db: Db, organisationId: string, hash: string): Promise<string | undefined> {
  const found = await db
    .selectFrom('persons')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .where('hash', '=', hash)
    .executeTakeFirst();
  return found?.id;
}

/** Returns the id of the person with this hash, which is created if there is none, and locks the person until the transaction ends. */
export async function putPerson(
  db: Db,
  { organisationId, hash, now }: { organisationId: string; hash: string; now: number },
): Promise<string> {
  // On conflict, a no-op update makes the statement return the existing row, and keeps `purgePeople` from deleting it meanwhile.
  const { id } = await db
    .insertInto('persons')
    .values({ organisation_id: organisationId, id: uuidv4(), hash, created_at: now })
    .onConflict((c) => c.columns(['organisation_id', 'hash']).doUpdateSet({ hash }))
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Locks a person's stored data against concurrent changes until the transaction ends. */
export async function lockPerson(db: Db, organisationId: string, id: string): Promise<void> {
  await db
    .updateTable('persons')
    .set((eb) => ({ created_at: eb.ref('created_at') }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .execute();
}

/** Whether this is the hash of the person with this id. */
export async function isPerson(db: Db, organisationId: string, id: string, hash: string): Promise<boolean> {
  return (await findPersonId(db, organisationId, hash)) === id;
}

/** Deletes people who were created before `before` and have no tokens or consents any more. */
export async function purgePeople(db: Kysely<Schema>, before: number): Promise<void> {
  const isUnused = (eb: ExpressionBuilder<Schema, 'persons'>) =>
    eb.and([
      eb('created_at', '<', before),
      eb('id', 'not in', eb.selectFrom('person_tokens').select('person_id')),
      eb('id', 'not in', eb.selectFrom('person_consents').select('person_id')),
    ]);
  await db.transaction().execute(async (tx) => {
    // Locked first, so that the next statement sees consents that began before.
    await tx
      .updateTable('persons')
      .set((eb) => ({ created_at: eb.ref('created_at') }))
      .where(isUnused)
      .execute();
    await tx.deleteFrom('persons').where(isUnused).execute();
  });
}

export type NewPersonTokens = Omit<
  PersonTokenTable,
  | 'credential'
  | 'refresh_token'
  | 'token_id'
  | 'oauth'
  | 'upstream_scopes'
  | 'refresh_claim'
  | 'refresh_claim_until'
  | 'last_used_at'
>;

/** Stores tokens from a person's consent, sealed for this row. */
export async function addPersonTokens(db: Db, row: NewPersonTokens, tokens: NewTokens): Promise<PersonTokenTable> {
  return await db
    .insertInto('person_tokens')
    .values({
      ...row,
      credential: tokens.credential,
      refresh_token: tokens.refreshToken,
      token_id: tokens.tokenId,
      oauth: tokens.oauth,
      upstream_scopes: tokens.upstreamScopes,
      refresh_claim: null,
      refresh_claim_until: null,
      last_used_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Lists the accepted tokens of a person for a connection and its platform at that time: kept ones, and those that wait for an owner. */
export async function listPersonTokens(
  db: Db,
  at: Pick<PersonTokenTable, 'organisation_id' | 'platform_id' | 'connection_id' | 'person_id'>,
): Promise<PersonTokenTable[]> {
  return await db
    .selectFrom('person_tokens')
    .selectAll()
    .where('organisation_id', '=', at.organisation_id)
    .where('platform_id', '=', at.platform_id)
    .where('connection_id', '=', at.connection_id)
    .where('person_id', '=', at.person_id)
    .where('standing', '!=', 'obtained')
    .execute();
}

/** Filter for the tokens of an organisation: by row, person, connection or standing; without members, all tokens. */
export type PersonTokenFilter = {
  id?: string;
  personId?: string;
  connectionId?: string;
  standing?: PersonTokenTable['standing'];
};

/** Lists the tokens of an organisation that people have accepted, oldest first; at most `limit`. */
export async function listGivenTokens(
  db: Db,
  organisationId: string,
  { id, personId, connectionId, standing }: PersonTokenFilter = {},
  limit?: number,
): Promise<PersonTokenTable[]> {
  let query = db
    .selectFrom('person_tokens')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('standing', '!=', 'obtained');
  if (id !== undefined) query = query.where('id', '=', id);
  if (personId !== undefined) query = query.where('person_id', '=', personId);
  if (standing !== undefined) query = query.where('standing', '=', standing);
  if (connectionId !== undefined) query = query.where('connection_id', '=', connectionId);
  if (limit !== undefined) query = query.limit(limit);
  return await query.orderBy('created_at').orderBy('id').execute();
}

/** Moves tokens from one standing to the next. False: they were deleted, or their standing has changed. */
export async function movePersonTokens(
  db: Db,
  { organisationId, id }: ConnectionPlace,
  from: PersonTokenTable['standing'],
  to: PersonTokenTable['standing'],
): Promise<boolean> {
  const moved = await db
    .updateTable('person_tokens')
    .set({ standing: to, browser_hash: null })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('standing', '=', from)
    .returning('id')
    .executeTakeFirst();
  return moved !== undefined;
}

/** Ids in one statement: SQLite takes 32,766 parameters. */
const IDS_PER_STATEMENT = 1_000;

/** Deletes tokens. Returns them, so that they can be revoked at their platform. */
export async function deletePersonTokens(
  db: Db,
  organisationId: string,
  ids: readonly string[],
): Promise<PersonTokenTable[]> {
  const deleted: PersonTokenTable[] = [];
  for (let at = 0; at < ids.length; at += IDS_PER_STATEMENT)
    deleted.push(
      ...(await db
        .deleteFrom('person_tokens')
        .where('organisation_id', '=', organisationId)
        .where('id', 'in', ids.slice(at, at + IDS_PER_STATEMENT))
        .returningAll()
        .execute()),
    );
  return deleted;
}

/** Deletes all tokens and consents of a connection. Returns the tokens, so that they can be revoked at their platform. */
export async function deleteTokensOfPeople(
  db: Db,
  organisationId: string,
  connectionId: string,
): Promise<PersonTokenTable[]> {
  await db
    .deleteFrom('person_consents')
    .where('organisation_id', '=', organisationId)
    .where('connection_id', '=', connectionId)
    .execute();
  return await db
    .deleteFrom('person_tokens')
    .where('organisation_id', '=', organisationId)
    .where('connection_id', '=', connectionId)
    .returningAll()
    .execute();
}
