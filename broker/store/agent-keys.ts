/** Public keys of agents: the bound one, the agent that has a given key, and former keys. */
import { sql } from 'kysely';
import type { Db } from './store.ts';
import type { AgentTable, FormerKeyTable } from './tables/agents.ts';

/** Another agent of the organisation with this key, revoked and deleted ones too: a former key must not be reused. */
export async function findOtherAgentWithKey(
  db: Db,
  agent: { organisationId: string; id: string },
  fingerprint: string,
): Promise<AgentTable | undefined> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', agent.organisationId)
    .where('id', '!=', agent.id)
    .where('key_fingerprint', '=', fingerprint)
    .executeTakeFirst();
}

/** Lists the replaced keys of an organisation's agents. */
export async function listFormerKeys(db: Db, organisationId: string): Promise<FormerKeyTable[]> {
  return await db.selectFrom('former_keys').selectAll().where('organisation_id', '=', organisationId).execute();
}

/** Whether this key of an agent of the organisation was replaced by another one. */
export async function isFormerKey(db: Db, organisationId: string, fingerprint: string): Promise<boolean> {
  const found = await db
    .selectFrom('former_keys')
    .select('fingerprint')
    .where('organisation_id', '=', organisationId)
    .where('fingerprint', '=', fingerprint)
    .executeTakeFirst();
  return found !== undefined;
}

/** Statuses of agents to which a key may be bound; a suspended one stays suspended. */
export const BINDABLE: readonly AgentTable['status'][] = ['pending', 'pending_bind', 'active', 'suspended'];

/**
 * Binds a key to an agent, and activates a pending agent. The same statement replaces the old key and records it as former, so that it
 * cannot be bound again. Call it in a transaction, which must be rolled back when this returns false: the agent was revoked meanwhile.
 */
export async function bindKey(
  db: Db,
  agent: { organisationId: string; id: string },
  key: { pem: string; fingerprint: string },
  now: number,
): Promise<boolean> {
  await db
    .insertInto('former_keys')
    .columns(['organisation_id', 'fingerprint', 'agent_id', 'replaced_at'])
    .expression((eb) =>
      eb
        .selectFrom('agents')
        .select((old) => [
          'organisation_id',
          old.ref('key_fingerprint').$notNull().as('fingerprint'),
          'id as agent_id',
          sql<number>`cast(${now} as bigint)`.as('replaced_at'),
        ])
        .where('organisation_id', '=', agent.organisationId)
        .where('id', '=', agent.id)
        .where('key_fingerprint', 'is not', null)
        .where('key_fingerprint', '!=', key.fingerprint),
    )
    .onConflict((c) => c.columns(['organisation_id', 'fingerprint']).doNothing())
    .execute();
  const bound = await db
    .updateTable('agents')
    .set((eb) => ({
      public_key_pem: key.pem,
      key_fingerprint: key.fingerprint,
      // Also for an agent that had no key before.
      agent_type: 'key',
      status: eb
        .case()
        .when('status', 'in', ['pending', 'pending_bind'])
        .then('active' as const)
        .else(eb.ref('status'))
        .end(),
      status_since: eb
        .case()
        .when('status', 'in', ['pending', 'pending_bind'])
        .then(now)
        .else(eb.ref('status_since'))
        .end(),
    }))
    .where('organisation_id', '=', agent.organisationId)
    .where('id', '=', agent.id)
    .where('status', 'in', BINDABLE)
    .returning('id')
    .executeTakeFirst();
  return bound !== undefined;
}

/** Returns when an agent's key last replaced another one; null: it never did. */
export async function keyReplacedAt(db: Db, organisationId: string, agentUuid: string): Promise<number | null> {
  const { at } = await db
    .selectFrom('former_keys')
    .select((eb) => eb.fn.max('replaced_at').as('at'))
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    .executeTakeFirstOrThrow();
  return at === null ? null : Number(at);
}
