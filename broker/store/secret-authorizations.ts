/** One-time authorisations for sending a secret to the broker, for one agent and one platform. */

import type { AgentRef } from './agents.ts';
import type { Db } from './store.ts';
import type { SecretAuthorizationTable } from './tables/registrations.ts';

type Ref = Pick<SecretAuthorizationTable, 'organisation_id' | 'id'>;

/** Stores an authorisation. */
export async function putSecretAuthorization(db: Db, authorization: SecretAuthorizationTable): Promise<void> {
  await db.insertInto('secret_authorizations').values(authorization).execute();
}

/** The authorisation with this token, of any organisation, used or not; or undefined. */
export async function findSecretAuthorization(
  db: Db,
  tokenHash: string,
): Promise<SecretAuthorizationTable | undefined> {
  return await db
    .selectFrom('secret_authorizations')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst();
}

/** An organisation's authorisations, newest first, recently ended ones included. */
export async function listSecretAuthorizations(db: Db, organisationId: string): Promise<SecretAuthorizationTable[]> {
  return await db
    .selectFrom('secret_authorizations')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

/** Consumes an authorisation. Returns true to exactly one caller, before it expires. */
export async function useSecretAuthorization(db: Db, ref: Ref, connectionId: string, now: number): Promise<boolean> {
  const used = await db
    .updateTable('secret_authorizations')
    .set({ used_at: now, connection_id: connectionId })
    .where('organisation_id', '=', ref.organisation_id)
    .where('id', '=', ref.id)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

/** Revokes an unused authorisation. False: it was used, or there is none. */
export async function removeSecretAuthorization(db: Db, organisationId: string, id: string): Promise<boolean> {
  const removed = await db
    .deleteFrom('secret_authorizations')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('used_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return removed !== undefined;
}

/** Expires the unused authorisations for agents. */
export async function endSecretAuthorizationsOf(db: Db, { organisationId, id }: AgentRef, now: number): Promise<void> {
  await db
    .updateTable('secret_authorizations')
    .set({ expires_at: now })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', [id].flat())
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .execute();
}

/** Deletes authorisations that expired before `before`. */
export async function purgeSecretAuthorizations(db: Db, before: number): Promise<void> {
  await db.deleteFrom('secret_authorizations').where('expires_at', '<', before).execute();
}
