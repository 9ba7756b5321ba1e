/** Static keys: bearers of an agent for one connection. Only hashes of them are stored. */
import type { AgentRef } from './agents.ts';
import { type Db, prepare, type Store } from './store.ts';
import type { AgentTable, StaticKeyTable } from './tables/agents.ts';

/** Stores a new key. */
export async function putStaticKey(
  db: Db,
  key: Omit<StaticKeyTable, 'last_used_at' | 'ended_at' | 'ended_because'>,
): Promise<void> {
  await db
    .insertInto('static_keys')
    .values({ ...key, last_used_at: null, ended_at: null, ended_because: null })
    .execute();
}

/** `connection_label`: null when the connection was removed. */
export type ListedStaticKey = StaticKeyTable & { connection_label: string | null };

/** A presented key with its agent's id (`agt_…`) and the label of its connection; null when the connection was removed. */
export type PresentedStaticKey = Pick<StaticKeyTable, 'id' | 'connection_id' | 'expires_at' | 'ended_at'> &
  Pick<ListedStaticKey, 'connection_label'> & { agent_public_id: AgentTable['agent_id'] };

const connectionOf = (db: Db) =>
  db
    .selectFrom('static_keys as k')
    .leftJoin('connections as c', (j) =>
      j.onRef('c.organisation_id', '=', 'k.organisation_id').onRef('c.id', '=', 'k.connection_id'),
    );

/**
 * `(hash)` → the key with that hash, of any organisation, ended ones included; or undefined. A prepared statement, because each request with a
 * key needs it.
 */
export function staticKeyReader(store: Store): (tokenHash: string) => Promise<PresentedStaticKey | undefined> {
  const statement = prepare('static_key', (slot) =>
    connectionOf(store.db)
      .innerJoin('agents as a', (j) =>
        j.onRef('a.organisation_id', '=', 'k.organisation_id').onRef('a.id', '=', 'k.agent_id'),
      )
      .select(['k.id', 'k.connection_id', 'k.expires_at', 'k.ended_at', 'c.label', 'a.agent_id'])
      .where('k.token_hash', '=', slot('hash')),
  );
  return async (tokenHash) => {
    const [row] = await store.read(statement, { hash: tokenHash });
    if (row === undefined) return undefined;
    const [id, connection_id, expires_at, ended_at, connection_label, agent_public_id] = row;
    return { id, connection_id, expires_at, ended_at, connection_label, agent_public_id } as PresentedStaticKey;
  };
}

/** An agent's keys, newest first, recently ended ones included. */
export async function listStaticKeys(
  db: Db,
  { organisation_id: organisationId, id }: Pick<AgentTable, 'organisation_id' | 'id'>,
): Promise<ListedStaticKey[]> {
  return await connectionOf(db)
    .selectAll('k')
    .select('c.label as connection_label')
    .where('k.organisation_id', '=', organisationId)
    .where('k.agent_id', '=', id)
    .orderBy('k.created_at', 'desc')
    .orderBy('k.id')
    .execute();
}

/** Ends a key in one guarded statement. Returns whether it was live until then. */
export async function endStaticKey(
  db: Db,
  { organisation_id: organisationId, id }: Pick<StaticKeyTable, 'organisation_id' | 'id'>,
  now: number,
): Promise<boolean> {
  const ended = await db
    .updateTable('static_keys')
    .set({ ended_at: now, ended_because: 'owner' })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
}

/** Ends all keys of agents that are revoked. */
export async function endStaticKeysOf(db: Db, { organisationId, id }: AgentRef, now: number): Promise<void> {
  await db
    .updateTable('static_keys')
    .set({ ended_at: now, ended_because: 'agent' })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', [id].flat())
    .where('ended_at', 'is', null)
    .execute();
}

/** Ends all keys for a connection that is removed. Returns how many were live until then. */
export async function endStaticKeysFor(
  db: Db,
  connection: { organisationId: string; id: string },
  now: number,
): Promise<number> {
  const ended = await db
    .updateTable('static_keys')
    .set({ ended_at: now, ended_because: 'connection' })
    .where('organisation_id', '=', connection.organisationId)
    .where('connection_id', '=', connection.id)
    .where('ended_at', 'is', null)
    .returning('expires_at')
    .execute();
  return ended.filter(({ expires_at }) => expires_at > now).length;
}

/** Sets when these keys were last used, unless a later time is stored. */
export async function setStaticKeysUsed(db: Db, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('static_keys')
    .set({ last_used_at: at })
    .where('id', 'in', ids)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', at)]))
    .execute();
}

/** Deletes keys that ended or expired before `before`. */
export async function purgeStaticKeys(db: Db, before: number): Promise<void> {
  await db
    .deleteFrom('static_keys')
    .where((eb) => eb.or([eb('expires_at', '<', before), eb('ended_at', '<', before)]))
    .execute();
}
