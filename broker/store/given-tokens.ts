/** Lists and counts the tokens that people gave, without reading the tokens. */
import type { Db } from './store.ts';
import type { PersonTokenTable } from './tables/people.ts';

/** Standings of accepted tokens. */
const ACCEPTED = ['unconfirmed', 'kept'] as const;

/** The columns of a list, without the tokens. */
const LISTED = [
  'id',
  'person_id',
  'platform_id',
  'connection_id',
  'named_by',
  'verified',
  'agent_id',
  'standing',
  'status',
  'oauth',
  'created_at',
] as const;
export type ListedTokens = Pick<PersonTokenTable, (typeof LISTED)[number]>;

/** `standing` undefined: both. `after`: the tokens after which the page begins. */
export type TokensPage = {
  standing?: (typeof ACCEPTED)[number] | undefined;
  platformId?: string | undefined;
  after?: Pick<PersonTokenTable, 'created_at' | 'id'> | undefined;
  limit: number;
};

/** Lists a page of the accepted tokens of an organisation, oldest first. */
export async function pageOfGivenTokens(
  db: Db,
  organisationId: string,
  { standing, platformId, after, limit }: TokensPage,
): Promise<ListedTokens[]> {
  // One query for each standing, which the index is ordered by.
  const pages = (standing === undefined ? ACCEPTED : [standing]).map((one) => {
    let query = db
      .selectFrom('person_tokens')
      .select(LISTED)
      .where('organisation_id', '=', organisationId)
      .where('standing', '=', one);
    if (platformId !== undefined) query = query.where('platform_id', '=', platformId);
    if (after !== undefined)
      query = query.where((eb) => eb(eb.refTuple('created_at', 'id'), '>', eb.tuple(after.created_at, after.id)));
    return query.orderBy('created_at').orderBy('id').limit(limit).execute();
  });
  return (await Promise.all(pages))
    .flat()
    .sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1))
    .slice(0, limit);
}

/** Counts the accepted tokens of people, by platform, connection and state. */
export async function countGivenTokens(
  db: Db,
  organisationId: string,
): Promise<(Pick<PersonTokenTable, 'platform_id' | 'connection_id' | 'standing' | 'status'> & { count: number })[]> {
  const rows = await db
    .selectFrom('person_tokens')
    .select((eb) => ['platform_id', 'connection_id', 'standing', 'status', eb.fn.countAll().as('count')])
    .where('organisation_id', '=', organisationId)
    .where('standing', 'in', ACCEPTED)
    .groupBy(['platform_id', 'connection_id', 'standing', 'status'])
    .execute();
  return rows.map((row) => ({ ...row, count: Number(row.count) }));
}
