/** Tokens of people come and go: replaced, thrown away, and revoked where they are from. */
import { readFacts } from '../oauth-client/facts.ts';
import { deletePersonTokens, findObtainedTokens, listPersonTokens } from '../store/people.ts';
import type { PersonConsentTable, PersonTokenTable } from '../store/schema.ts';
import type { Connecting } from './connections.ts';
import { loadConnection } from './find-connection.ts';

/** Forgets what was obtained and is not to be kept, and revokes it at the platform. */
export async function discard(services: Connecting, consent: PersonConsentTable): Promise<void> {
  const { broker } = services;
  const { organisation_id: organisationId, id } = consent;
  const obtained = await findObtainedTokens(broker.store.db, organisationId, id);
  if (obtained)
    await revokePersonTokens(services, await deletePersonTokens(broker.store.db, organisationId, [obtained.id]));
}

/** In the transaction that keeps other tokens of the person: takes away those that are kept. */
export async function endKept(
  tx: Parameters<typeof listPersonTokens>[0],
  { organisation_id, platform_id, connection_id, person_id }: PersonTokenTable,
): Promise<PersonTokenTable[]> {
  const at = {
    organisationId: organisation_id,
    platformId: platform_id,
    connectionId: connection_id,
    personId: person_id,
  };
  const kept = (await listPersonTokens(tx, at)).filter(({ standing }) => standing === 'kept');
  return await deletePersonTokens(
    tx,
    organisation_id,
    kept.map(({ id }) => id),
  );
}

/** Of another account than the new tokens: with the same one a server might take the new ones away, too. */
export async function revokeReplaced(
  services: Connecting,
  now: PersonTokenTable,
  before: readonly PersonTokenTable[],
): Promise<void> {
  const account = readFacts(now.oauth)?.account ?? null;
  const others = before.filter(({ oauth }) => account !== null && readFacts(oauth)?.account !== account);
  await revokePersonTokens(services, others);
}

/** Revokes tokens that are forgotten here already, where there is a place for it (RFC 7009). Never fails. */
export async function revokePersonTokens(
  { broker, oauth }: Connecting,
  rows: readonly PersonTokenTable[],
): Promise<number> {
  let revoked = 0;
  for (const row of rows)
    try {
      const { connection, manifest } = await loadConnection(broker.store.db, row.organisation_id, row.connection_id);
      const done = await oauth.revoke(connection, manifest, 'person_tokens', row);
      if (done === true) revoked++;
      else if (done !== false)
        broker.log.warn({ connection: connection.id, detail: done.detail }, 'tokens of a person could not be revoked');
    } catch (error) {
      broker.log.warn({ err: error, connection: row.connection_id }, 'tokens of a person could not be revoked');
    }
  return revoked;
}
