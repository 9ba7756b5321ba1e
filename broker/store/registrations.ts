/** Registrations of agents (specification, Registration): pending, decided, expired; and their keys until they are claimed. */
import type { AgentRef } from './agents.ts';
import { addressOf } from './former-owners.ts';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';
import type { RegistrationTable } from './tables/registrations.ts';

export type RegistrationRef = { organisation_id: string; id: string };

/** A registration for an existing owner. */
export type KnownRegistration = RegistrationTable & { organisation_id: string };

/** A registration with the addressed owner and the deciding owner, for display. */
export type ShownRegistration = KnownRegistration & { owner_email: string | null; decided_by_email: string | null };

/** Columns that a new registration leaves empty. */
type Undecided =
  | 'decided_at'
  | 'decided_by'
  | 'decision_audit_id'
  | 'granted'
  | 'private_key'
  | 'claim_until'
  | 'claimed_at';

/** Stores a pending registration. */
export async function putRegistration(db: Db, registration: Omit<RegistrationTable, Undecided>): Promise<void> {
  await db.insertInto('registrations').values(registration).execute();
}

/** The registration with this token, of any organisation; or undefined. */
export async function findRegistrationByToken(db: Db, tokenHash: string): Promise<RegistrationTable | undefined> {
  return await db.selectFrom('registrations').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
}

const ofOrganisation = (db: Db, organisationId: string) =>
  db
    .selectFrom('registrations')
    .selectAll()
    .select((eb) => [
      eb.selectFrom('owners').select('email').whereRef('owners.id', '=', 'registrations.owner_id').as('owner_email'),
      addressOf('registrations.organisation_id', 'registrations.decided_by').as('decided_by_email'),
    ])
    .where('organisation_id', '=', organisationId);

/** One registration of an organisation, or undefined. */
export async function findRegistration(
  db: Db,
  organisationId: string,
  id: string,
): Promise<ShownRegistration | undefined> {
  const found = await ofOrganisation(db, organisationId).where('id', '=', id).executeTakeFirst();
  return found as ShownRegistration | undefined;
}

/** An organisation's registrations, newest first, after the cursor `before`; none after one that was deleted. */
export async function listRegistrations(
  db: Db,
  organisationId: string,
  page: { status?: RegistrationTable['status']; before?: string; limit: number; now: number },
): Promise<ShownRegistration[]> {
  let query = ofOrganisation(db, organisationId);
  const { status, before, now } = page;
  if (status === 'pending') query = query.where('status', '=', 'pending').where('expires_at', '>', now);
  else if (status === 'expired')
    query = query.where((eb) =>
      eb.or([eb('status', '=', 'expired'), eb.and([eb('status', '=', 'pending'), eb('expires_at', '<=', now)])]),
    );
  else if (status) query = query.where('status', '=', status);
  if (before !== undefined) {
    const last = await findRegistration(db, organisationId, before);
    if (!last) return [];
    query = query.where((eb) =>
      eb.or([
        eb('created_at', '<', last.created_at),
        eb.and([eb('created_at', '=', last.created_at), eb('id', '<', last.id)]),
      ]),
    );
  }
  const found = await query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(page.limit).execute();
  return found as ShownRegistration[];
}

/** `granted`, `private_key` and `claim_until`: of an approval; null otherwise. */
export type RegistrationDecision = Pick<RegistrationTable, 'granted' | 'private_key' | 'claim_until'> & {
  status: 'approved' | 'rejected';
  at: number;
  by: string;
  auditId: string;
};

/**
 * Decides a pending registration in one guarded statement, so that one of concurrent callers wins. Returns whether this one did; false: it was
 * already decided, or has expired.
 */
export async function decideRegistration(
  db: Db,
  registration: RegistrationRef,
  decision: RegistrationDecision,
): Promise<boolean> {
  const decided = await db
    .updateTable('registrations')
    .set({
      status: decision.status,
      decided_at: decision.at,
      decided_by: decision.by,
      decision_audit_id: decision.auditId,
      granted: decision.granted,
      private_key: decision.private_key,
      claim_until: decision.claim_until,
    })
    .where('organisation_id', '=', registration.organisation_id)
    .where('id', '=', registration.id)
    .where('status', '=', 'pending')
    .where('expires_at', '>', decision.at)
    .returning('id')
    .executeTakeFirst();
  return decided !== undefined;
}

/** Deletes the stored private key when it is claimed. Returns true to exactly one caller, before `claim_until`. */
export async function takePrivateKey(db: Db, registration: RegistrationRef, now: number): Promise<boolean> {
  const taken = await db
    .updateTable('registrations')
    .set({ private_key: null, claimed_at: now })
    .where('organisation_id', '=', registration.organisation_id)
    .where('id', '=', registration.id)
    .where('status', '=', 'approved')
    .where('claimed_at', 'is', null)
    .where('private_key', 'is not', null)
    .where('claim_until', '>', now)
    .returning('id')
    .executeTakeFirst();
  return taken !== undefined;
}

/** Lists approved registrations whose private key was not claimed in time and is still stored. */
export async function listUncollected(
  db: Db,
  now: number,
): Promise<
  {
    organisation_id: string;
    id: string;
    agent: Pick<AgentTable, 'organisation_id' | 'id' | 'agent_id' | 'parent_id' | 'expires_at'>;
  }[]
> {
  const found = await db
    .selectFrom('registrations as r')
    .innerJoin('agents as a', (join) =>
      join.onRef('a.organisation_id', '=', 'r.organisation_id').onRef('a.agent_id', '=', 'r.agent_id'),
    )
    .select(['a.organisation_id', 'r.id', 'a.id as agent_uuid', 'a.agent_id', 'a.parent_id', 'a.expires_at'])
    .where('r.private_key', 'is not', null)
    .where('r.claim_until', '<=', now)
    .execute();
  return found.map(({ organisation_id, id, agent_uuid, ...agent }) => ({
    organisation_id,
    id,
    agent: { organisation_id, id: agent_uuid, ...agent },
  }));
}

/**
 * Deletes an agent's unclaimed private key, if there is one, and its public half, unless another key was bound meanwhile. To be
 * called in the transaction that ends the agent, after updating the agent's row: claiming takes locks in the same order, so
 * that there is no deadlock.
 */
export async function destroyUncollectedKey(db: Db, { organisationId, id }: AgentRef): Promise<void> {
  const destroyed = await db
    .updateTable('registrations')
    .set({ private_key: null })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', (eb) =>
      eb
        .selectFrom('agents')
        .select('agents.agent_id')
        .where('agents.organisation_id', '=', organisationId)
        .where('agents.id', 'in', [id].flat()),
    )
    .where('private_key', 'is not', null)
    .returning('agent_id')
    .execute();
  if (destroyed.length === 0) return;
  const publicIds = destroyed.map(({ agent_id }) => agent_id);
  await db
    .updateTable('agents')
    .set({ public_key_pem: null, key_fingerprint: null })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', publicIds)
    .where('status', 'not in', ['active', 'suspended'])
    .execute();
}

/** Deletes registrations that expired before `before` and have no key; their decisions remain in the audit. */
export async function purgeRegistrations(db: Db, before: number): Promise<void> {
  await db.deleteFrom('registrations').where('expires_at', '<', before).where('private_key', 'is', null).execute();
}

/** Deletes registrations for unknown owners, except the `most` newest. */
export async function capRegistrationsOfNobody(db: Db, most: number): Promise<void> {
  await db
    .deleteFrom('registrations')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('registrations')
        .select('token_hash')
        .where('organisation_id', 'is', null)
        .orderBy('expires_at', 'desc')
        .orderBy('id')
        .limit(100_000)
        .offset(most),
    )
    .execute();
}
