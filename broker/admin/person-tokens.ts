/** Tokens of people come and go: replaced, thrown away, and revoked where they are from. */
import { isOtherAccount, readFacts } from '../oauth-client/facts.ts';
import { deletePersonTokens, listPersonTokens, lockPerson } from '../store/people.ts';
import type { PersonTokenTable } from '../store/tables/people.ts';
import type { Connecting } from './connections.ts';
import { loadConnection } from './find-connection.ts';
import { revokeGiven } from './revoke-given.ts';

/** In the transaction that keeps other tokens of the person: takes away those that are kept. */
export async function endKept(
  tx: Parameters<typeof listPersonTokens>[0],
  fresh: PersonTokenTable,
): Promise<PersonTokenTable[]> {
  const { organisation_id, person_id } = fresh;
  // Of two that are kept at once the second one has to see the first.
  await lockPerson(tx, organisation_id, person_id);
  const kept = (await listPersonTokens(tx, fresh)).filter(({ standing }) => standing === 'kept');
  return await deletePersonTokens(
    tx,
    organisation_id,
    kept.map(({ id }) => id),
  );
}

/** Of another account than the new tokens: with the same one, or one that may be, a server might take the new ones away, too. */
export async function revokeReplaced(
  services: Connecting,
  now: PersonTokenTable,
  before: readonly PersonTokenTable[],
): Promise<void> {
  const account = readFacts(now.oauth)?.account ?? null;
  const others = before.filter(({ oauth }) => isOtherAccount(readFacts(oauth)?.account ?? null, account));
  await revokePersonTokens(services, others);
}

/** Revokes tokens of one organisation that are forgotten here already; answers how many. Never fails. */
export async function revokePersonTokens(services: Connecting, rows: readonly PersonTokenTable[]): Promise<number> {
  const { broker } = services;
  const perConnection = Map.groupBy(rows, ({ connection_id: id }) => id);
  const revoked = await Promise.all(
    [...perConnection].map(async ([connection, ofIt]) => {
      try {
        const found = await loadConnection(broker.store.db, ofIt[0]?.organisation_id ?? '', connection);
        return await revokeGiven(services, found, ofIt);
      } catch (error) {
        broker.log.warn({ err: error, connection }, 'tokens of people could not be revoked');
        return 0;
      }
    }),
  );
  return revoked.reduce((sum, count) => sum + count, 0);
}
