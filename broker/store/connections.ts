import type { TokenRowPlace } from './oauth-tokens.ts';
import { deleteTokensOfPeople } from './people.ts';
import { endStaticKeysFor } from './static-keys.ts';
import type { Db } from './store.ts';
import type { ConnectionTable, NewConnection, UpstreamTokenTable } from './tables/connections.ts';
import type { PersonTokenTable } from './tables/people.ts';
import { deleteUpstreamTokens } from './upstream-tokens.ts';

/** An organisation's connections, in a stable order, credentials sealed. */
export async function listConnections(db: Db, organisationId: string): Promise<ConnectionTable[]> {
  return await db
    .selectFrom('connections')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Columns of a credential that is not from an OAuth server. */
const NO_TOKENS = {
  refresh_token: null,
  oauth: null,
  token_id: null,
  refresh_claim: null,
  refresh_claim_until: null,
  failing: null,
  attention: 0 as const,
};

/** Writes a connection: a new one, or another credential for the one with the same id. */
export async function putConnection(db: Db, connection: NewConnection): Promise<void> {
  const { organisation_id: _organisation, id: _id, created_at: _created, ...terms } = connection;
  await db
    .insertInto('connections')
    .values(connection)
    .onConflict((c) => c.columns(['organisation_id', 'id']).doUpdateSet({ ...terms, ...NO_TOKENS }))
    .execute();
}

/** Updates a connection except for its credential, which may be refreshed concurrently. */
export async function changeConnection(
  db: Db,
  connection: Pick<ConnectionTable, 'organisation_id' | 'id'> &
    Partial<Pick<ConnectionTable, 'platform_id' | 'is_default' | 'secret_reference' | 'idle_ms' | 'wait_ms'>>,
): Promise<void> {
  const { organisation_id: organisation, id, ...terms } = connection;
  await db
    .updateTable('connections')
    .set(terms)
    .where('organisation_id', '=', organisation)
    .where('id', '=', id)
    .execute();
}

/** One connection of an organisation, or undefined. */
export async function findConnection(db: Db, organisationId: string, id: string): Promise<ConnectionTable | undefined> {
  return await db
    .selectFrom('connections')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/**
 * Returns the current connection and locks it until the transaction ends, for callers that end its tokens, which may be refreshed at any
 * time. Locks by a no-op update, as `lockOrganisation` does.
 */
export async function lockConnection(db: Db, organisationId: string, id: string): Promise<ConnectionTable | undefined> {
  return await db
    .updateTable('connections')
    .set((eb) => ({ created_at: eb.ref('created_at') }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

/** Inserts a connection. Returns it, or undefined: the label is taken. */
export async function addConnection(db: Db, connection: NewConnection): Promise<ConnectionTable | undefined> {
  return await db
    .insertInto('connections')
    .values(connection)
    .onConflict((c) => c.columns(['organisation_id', 'label']).doNothing())
    .returningAll()
    .executeTakeFirst();
}

/** Clears the default connection of a platform. */
export async function clearDefaultConnection(db: Db, organisationId: string, platformId: string): Promise<void> {
  await db
    .updateTable('connections')
    .set({ is_default: 0 })
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .where('is_default', '=', 1)
    .execute();
}

/**
 * Replaces a connection's credential (sealed), and resets its status, its reference in the governance file and its upstream
 * scopes. Returns the connection, or undefined when there is none.
 */
export async function replaceCredential(
  db: Db,
  connection: { organisationId: string; id: string },
  credential: Buffer,
  now: number,
): Promise<ConnectionTable | undefined> {
  return await db
    .updateTable('connections')
    .set((eb) => ({
      credential,
      credential_replaced_at: now,
      status: 'active' as const,
      secret_reference: null,
      upstream_scopes: null,
      ...NO_TOKENS,
      revision: eb('revision', '+', 1),
    }))
    .where('organisation_id', '=', connection.organisationId)
    .where('id', '=', connection.id)
    .returningAll()
    .executeTakeFirst();
}

/** Stores the same credential, encrypted again. */
export async function storeResealed(
  db: Db,
  connection: { organisationId: string; id: string },
  credential: Buffer,
): Promise<void> {
  await db
    .updateTable('connections')
    .set({ credential })
    .where('organisation_id', '=', connection.organisationId)
    .where('id', '=', connection.id)
    .execute();
}

/** Agents with a grant that names this connection, without revoked ones, by name. Children are represented by their parents. */
export async function listAgentsNaming(
  db: Db,
  organisationId: string,
  connectionId: string,
): Promise<{ name: string; agent_id: string }[]> {
  return await db
    .selectFrom('grants as g')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'g.organisation_id').onRef('a.id', '=', 'g.agent_id'),
    )
    .select(['a.name', 'a.agent_id'])
    .distinct()
    .where('g.organisation_id', '=', organisationId)
    .where('g.connection_id', '=', connectionId)
    .where('a.status', 'not in', ['revoked', 'deleted'])
    .where('a.parent_id', 'is', null)
    .orderBy('a.name')
    .orderBy('a.agent_id')
    .execute();
}

/** The agents that may use a connection now, without children, by name, with the scopes of their grants. */
export async function listAgentsUsing(
  db: Db,
  { organisation_id: organisationId, id, platform_id: platformId, is_default: isDefault }: ConnectionTable,
  now: number,
): Promise<{ name: string; grant_id: string; scopes: string }[]> {
  return await db
    .selectFrom('grants as g')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'g.organisation_id').onRef('a.id', '=', 'g.agent_id'),
    )
    .select(['a.name', 'g.id as grant_id', 'g.scopes'])
    .where('g.organisation_id', '=', organisationId)
    .where('g.platform_id', '=', platformId)
    .where((eb) =>
      isDefault === 1
        ? eb.or([eb('g.connection_id', '=', id), eb('g.connection_id', 'is', null)])
        : eb('g.connection_id', '=', id),
    )
    .where((eb) => eb.or([eb('g.expires_at', 'is', null), eb('g.expires_at', '>', now)]))
    .where((eb) => eb.or([eb('a.expires_at', 'is', null), eb('a.expires_at', '>', now)]))
    .where('a.status', 'not in', ['revoked', 'deleted'])
    .where('a.parent_id', 'is', null)
    .orderBy('a.name')
    .orderBy('g.id')
    .execute();
}

/**
 * Records that the upstream refused the credential in this row, or accepted it again.
 *
 * @param seen the sealed credential when the call began: no effect if an owner has replaced it since. Not compared for tokens, which the broker replaces;
 * for them `oauth`, when given, is compared
 */
export async function setCredentialStatus(
  db: Db,
  { table, organisationId, id }: TokenRowPlace,
  status: ConnectionTable['status'],
  seen: { credential: Uint8Array | null; oauth?: string | null } = { credential: null },
): Promise<void> {
  await db
    .updateTable(table)
    .set({ status })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('status', '!=', status)
    .$if(seen.credential !== null && seen.oauth == null, (qb) =>
      qb.where((eb) => eb.or([eb('oauth', 'is not', null), eb('credential', '=', Buffer.from(seen.credential ?? []))])),
    )
    .$if(seen.oauth != null, (qb) => qb.where('oauth', '=', seen.oauth ?? ''))
    .execute();
}

type Ended = { people: PersonTokenTable[]; appTokens: UpstreamTokenTable[]; staticKeys: number };

/**
 * Ends what was issued for a connection that leaves its platform: its static keys, and the tokens of people and of an App, which are
 * returned so that they can be revoked. `staticKeys`: how many keys were live.
 */
export async function endForConnection(db: Db, organisationId: string, id: string, now: number): Promise<Ended> {
  const staticKeys = await endStaticKeysFor(db, { organisationId, id }, now);
  const appTokens = await deleteUpstreamTokens(db, { organisationId, connectionId: id });
  const people = await deleteTokensOfPeople(db, organisationId, id);
  return { people, appTokens, staticKeys };
}

/** Deletes a connection with its credential, and ends what was issued for it. */
export async function deleteConnection(db: Db, organisationId: string, id: string, now: number): Promise<Ended> {
  const ended = await endForConnection(db, organisationId, id, now);
  await db.deleteFrom('connections').where('organisation_id', '=', organisationId).where('id', '=', id).execute();
  return ended;
}
