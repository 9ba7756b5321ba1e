/**
 * Scopes that an MCP server required for a call and that the token did not have (RFC 6750 section 3.1). They are requested when an owner connects again,
 * or when the person whose token it is consents again.
 */
import { findTokens, type TokenRow, type TokenRowPlace } from '../store/oauth-tokens.ts';
import type { Db } from '../store/store.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import { readFacts, writeFacts } from './facts.ts';

/** Most scopes stored for a token: a server could require another one for each call. */
const MAX = 100;

/**
 * Stores the scopes beside the token; they are deleted when another token is stored. Returns false when all of them were already requested, so that
 * another consent would not help.
 */
export async function keepWantedScopes(db: Db, place: TokenRowPlace, scopes: readonly string[]): Promise<boolean> {
  const row = await findTokens(db, place);
  const facts = readFacts(row?.oauth ?? null);
  if (!row || !facts || scopes.every((scope) => facts.requested?.includes(scope))) return false;
  const known = facts.wanted ?? [];
  const wanted = [...new Set([...known, ...scopes])].slice(0, MAX);
  if (wanted.length === known.length) return true;
  // After a lost race with another update, these scopes are stored at the next refusal.
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
 * Stores what a scope of the platform needs and the tokens were not granted: the first of its alternatives, unless one of them was requested, or is
 * stored, already.
 */
export async function keepNeededScope(db: Db, place: TokenRowPlace, alternatives: readonly string[]): Promise<void> {
  const facts = readFacts((await findTokens(db, place))?.oauth ?? null);
  const known = [...(facts?.requested ?? []), ...(facts?.wanted ?? [])];
  const [first] = alternatives;
  if (first !== undefined && !alternatives.some((one) => known.includes(one)))
    await keepWantedScopes(db, place, [first]);
}

/**
 * Returns the stored scopes together with the granted ones, which a new consent replaces (MCP, Step-Up Authorization Flow); empty when none are stored.
 */
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
