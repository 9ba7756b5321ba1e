/** Scopes that an MCP server wanted for a call and that the token did not have (RFC 6750 section 3.1): asked for when an owner connects again. */
import { findTokens } from '../store/oauth-tokens.ts';
import type { Db } from '../store/store.ts';
import { readFacts, writeFacts } from './facts.ts';

/** All that a connection keeps: a server may want another one for each call. */
const MOST = 100;

/**
 * Keeps them beside what was issued to the connection; they go when other tokens are stored. False: all of them were requested when it was
 * connected, so that connecting it again gives no more.
 */
export async function keepWantedScopes(
  db: Db,
  place: { organisationId: string; id: string },
  scopes: readonly string[],
): Promise<boolean> {
  const row = await findTokens(db, { table: 'connections', ...place });
  const facts = readFacts(row?.oauth ?? null);
  if (!row || !facts || scopes.every((scope) => facts.requested?.includes(scope))) return false;
  const known = facts.wanted ?? [];
  const wanted = [...new Set([...known, ...scopes])].slice(0, MOST);
  if (wanted.length === known.length) return true;
  // Of two at the same time the second one is kept at its next refusal.
  await db
    .updateTable('connections')
    .set({ oauth: writeFacts({ ...facts, wanted }) })
    .where('organisation_id', '=', place.organisationId)
    .where('id', '=', place.id)
    .where('oauth', '=', row.oauth)
    .execute();
  return true;
}
