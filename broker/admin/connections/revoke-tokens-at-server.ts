/** Revokes tokens of people at the server that issued them (RFC 7009), after they were deleted here. */
import type { Uses } from '../../broker.ts';
import type { OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import { inTurns } from '../../runtime/in-turns.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import type { ReadConnection } from './find-connection.ts';

/** Limits the wait: an unreachable server must not delay an owner once per person. */
const TIMEOUT = { concurrency: 8, timeoutMs: 20_000 };

/**
 * Returns how many were revoked; never rejects. Failures are logged.
 *
 * @param at the connection that they are for and its manifest, also when it was removed just now
 */
export async function revokeTokensAtServer(
  { broker, oauth }: Uses<'log'> & { oauth: OAuthConnections },
  { connection, manifest }: ReadConnection,
  rows: readonly PersonTokenTable[],
): Promise<number> {
  let revoked = 0;
  let failed = 0;
  const left = await inTurns(rows, TIMEOUT, async (row) => {
    try {
      const done = await oauth.revoke(connection, manifest, 'person_tokens', row);
      if (done === true) revoked++;
      else if (done !== false) {
        failed++;
        broker.log.warn({ connection: connection.id, detail: done.detail }, 'tokens of a person could not be revoked');
      }
    } catch (error) {
      failed++;
      broker.log.warn({ err: error, connection: connection.id }, 'tokens of a person could not be revoked');
    }
  });
  if (left.length > 0)
    broker.log.warn(
      { connection: connection.id, revoked, failed, left: left.length },
      'the authorization server is too slow: some tokens of people were deleted here without being revoked there',
    );
  return revoked;
}
