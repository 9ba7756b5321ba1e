/** Replaces, discards and revokes tokens of people. */
import { isOtherAccount, readFacts } from '../../oauth-client/facts.ts';
import { deletePersonTokens, listPersonTokens, lockPerson } from '../../store/people.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import type { Connecting } from '../connections/connections.ts';
import { loadConnection } from '../connections/find-connection.ts';
import { type RevokedTokens, revokeTokensAtServer } from '../connections/revoke-tokens-at-server.ts';

/** In the transaction that keeps new tokens of the person: deletes those that were kept before. */
export async function endKept(
  tx: Parameters<typeof listPersonTokens>[0],
  fresh: PersonTokenTable,
): Promise<PersonTokenTable[]> {
  const { organisation_id, person_id } = fresh;
  // Of two concurrent requests the second has to see the tokens of the first.
  await lockPerson(tx, organisation_id, person_id);
  const kept = (await listPersonTokens(tx, fresh)).filter(({ standing }) => standing === 'kept');
  return await deletePersonTokens(
    tx,
    organisation_id,
    kept.map(({ id }) => id),
  );
}

/**
 * Revokes replaced tokens that belong to another account than the new ones. If the account is the same or not known, a server might revoke the new
 * ones, too.
 */
export async function revokeReplaced(
  services: Connecting,
  now: PersonTokenTable,
  before: readonly PersonTokenTable[],
): Promise<void> {
  const account = readFacts(now.oauth)?.account ?? null;
  const others = before.filter(({ oauth }) => isOtherAccount(readFacts(oauth)?.account ?? null, account));
  await revokePersonTokens(services, others);
}

/** Revokes tokens of one organisation that are deleted here already; returns how many were revoked. Never rejects. */
export async function revokePersonTokens(
  services: Connecting,
  rows: readonly PersonTokenTable[],
): Promise<RevokedTokens> {
  const { broker } = services;
  const perConnection = Map.groupBy(rows, ({ connection_id: id }) => id);
  const revoked = await Promise.all(
    [...perConnection].map(async ([connection, ofIt]) => {
      try {
        const found = await loadConnection(broker.store.db, ofIt[0]?.organisation_id ?? '', connection);
        return await revokeTokensAtServer(services, found, ofIt);
      } catch (error) {
        broker.log.warn({ err: error, connection }, 'tokens of people could not be revoked');
        return { revoked: 0, retried: 0 };
      }
    }),
  );
  return {
    revoked: revoked.reduce((sum, one) => sum + one.revoked, 0),
    retried: revoked.reduce((sum, one) => sum + one.retried, 0),
  };
}
