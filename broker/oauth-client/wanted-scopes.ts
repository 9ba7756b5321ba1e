/**
 * Scopes that an MCP server wanted for a call and that the token did not have (RFC 6750 section 3.1): requested when an owner connects again, or when
 * the person whose token it is consents again.
 */
import { findTokens, type TokenRow, type TokenRowPlace } from '../store/oauth-tokens.ts';
import type { Db } from '../store/store.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import { readFacts, writeFacts } from './facts.ts';

/** All that is kept of a token: a server may want another one for each call. */
const MOST = 100;

/**
 * Keeps them beside the token; they go when another is stored. False: all of them were requested with it, so that another consent gives no more.
 */
export async function keepWantedScopes(db: Db, place: TokenRowPlace, scopes: readonly string[]): Promise<boolean> {
  const row = await findTokens(db, place);
  const facts = readFacts(row?.oauth ?? null);
  if (!row || !facts || scopes.every((scope) => facts.requested?.includes(scope))) return false;
  const known = facts.wanted ?? [];
  const wanted = [...new Set([...known, ...scopes])].slice(0, MOST);
  if (wanted.length === known.length) return true;
  // Of two at the same time the second one is kept at its next refusal.
  await db
    .updateTable(place.table)
    .set({ oauth: writeFacts({ ...facts, wanted }) })
    .where('organisation_id', '=', place.organisationId)
    .where('id', '=', place.id)
    .where('oauth', '=', row.oauth)
    .execute();
  return true;
}

/**
 * Keeps what a scope of the platform needs and the tokens were not granted: of its alternatives the first one, unless one of them was requested, or
 * is wanted, already.
 */
export async function keepNeededScope(db: Db, place: TokenRowPlace, alternatives: readonly string[]): Promise<void> {
  const facts = readFacts((await findTokens(db, place))?.oauth ?? null);
  const known = [...(facts?.requested ?? []), ...(facts?.wanted ?? [])];
  const [first] = alternatives;
  if (first !== undefined && !alternatives.some((one) => known.includes(one)))
    await keepWantedScopes(db, place, [first]);
}

/** Beside them what was granted before, which a new consent takes the place of (MCP, Step-Up Authorization Flow); nothing where none was wanted. */
export function scopesWanted({
  id,
  oauth,
  upstream_scopes: granted,
}: Pick<TokenRow, 'id' | 'oauth'> & Pick<ConnectionTable, 'upstream_scopes'>): string[] {
  const wanted = readFacts(oauth)?.wanted ?? [];
  if (wanted.length === 0) return [];
  const had = granted === null ? [] : readStored(Texts, granted, `upstream scopes of ${id}`);
  return [...new Set([...had, ...wanted])];
}
