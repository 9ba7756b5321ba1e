/** Revokes tokens of people at the server that issued them (RFC 7009), after they were deleted here. */
import type { Uses } from '../../broker.ts';
import type { OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import { inTurns } from '../../runtime/in-turns.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import type { ReadConnection } from './find-connection.ts';

/** Limits the wait: an unreachable server must not delay an owner once per person. */
const TIMEOUT = { concurrency: 8, timeoutMs: 20_000 };

/** `retried`: requests that the server did not accept yet, and that the broker repeats. */
export type RevokedTokens = { revoked: number; retried: number };

/**
 * Returns how many were revoked; never rejects. Failures are logged.
 *
 * @param at the connection that they are for and its manifest, also when it was removed just now
 */
export async function revokeTokensAtServer(
  { broker, oauth }: Uses<'log'> & { oauth: OAuthConnections },
  { connection, manifest }: ReadConnection,
  rows: readonly PersonTokenTable[],
): Promise<RevokedTokens> {
  const done: RevokedTokens = { revoked: 0, retried: 0 };
  const revoke = async (row: PersonTokenTable, when?: 'later') => {
    try {
      const revoked = await oauth.revoke(connection, manifest, 'person_tokens', row, when);
      if (revoked === true) done.revoked++;
      if (typeof revoked !== 'object') return;
      const { detail, retriedUntil } = revoked;
      if (retriedUntil !== undefined) done.retried++;
      const isRetried = retriedUntil !== undefined;
      broker.log.warn({ connection: connection.id, detail, isRetried }, 'tokens of a person could not be revoked');
    } catch (error) {
      broker.log.warn({ err: error, connection: connection.id }, 'tokens of a person could not be revoked');
    }
  };
  const left = await inTurns(rows, TIMEOUT, revoke);
  for (const row of left) await revoke(row, 'later');
  return done;
}
