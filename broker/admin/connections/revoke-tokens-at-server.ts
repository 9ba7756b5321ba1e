/** Revokes tokens at the server that issued them (RFC 7009), after they were deleted here. */
import type { Uses } from '../../broker.ts';
import type { OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import type { NotRevoked } from '../../oauth-client/revocations.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import type { ReadConnection } from './find-connection.ts';

/** `retried`: requests that the server did not accept yet, and that the broker repeats. */
export type RevokedTokens = { revoked: number; retried: number };

/**
 * Returns how many were revoked; never rejects. Failures are logged.
 *
 * @param at the connection that they are for and its manifest, also when it was removed just now
 */
export async function revokeTokensAtServer(
  services: Uses<'log'> & { oauth: OAuthConnections },
  at: ReadConnection,
  people: readonly PersonTokenTable[],
): Promise<RevokedTokens> {
  const results = await revokeAll(services, at, { people });
  const isRetried = (one: (typeof results)[number]) => typeof one === 'object' && one.retriedUntil !== undefined;
  return {
    revoked: results.filter((one) => one === true).length,
    retried: results.filter(isRetried).length,
  };
}

/**
 * Revokes the tokens of a connection and of people for it; never rejects. All requests are stored before the first is sent. Returns the results, that of
 * the connection first. False: there were none, or the server has no revocation endpoint.
 */
export async function revokeAll(
  { broker, oauth }: Uses<'log'> & { oauth: OAuthConnections },
  { connection, manifest }: ReadConnection,
  { own, people }: { own?: ConnectionTable; people: readonly PersonTokenTable[] },
): Promise<(boolean | NotRevoked)[]> {
  const rows = [
    ...(own ? [{ ...own, table: 'connections' as const }] : []),
    ...people.map((row) => ({ ...row, table: 'person_tokens' as const })),
  ];
  const warn = (why: object) =>
    broker.log.warn({ connection: connection.id, ...why }, 'tokens could not be revoked at their server');
  try {
    const results = await oauth.revoke(connection, manifest, rows);
    for (const one of results)
      if (typeof one === 'object') warn({ detail: one.detail, isRetried: one.retriedUntil !== undefined });
    return results;
  } catch (error) {
    warn({ err: error });
    return rows.map(() => ({ problem: 'failed', detail: 'An internal error occurred; the log has it.' }));
  }
}
