/** Agents that asked to be one (specification, Registration): waiting, decided, expired; and their keys until collected. */
import type { AgentTable, RegistrationTable } from './schema.ts';
import type { Db } from './store.ts';

export type RegistrationRef = { organisation_id: string; id: string };

/** One that belongs to somebody. */
export type KnownRegistration = RegistrationTable & { organisation_id: string };

/** The same with who was asked and who decided, as owners see it. */
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

/** Stores a registration that waits. */
export async function putRegistration(db: Db, registration: Omit<RegistrationTable, Undecided>): Promise<void> {
  await db.insertInto('registrations').values(registration).execute();
}

/** Those that wait for this owner, who may be nobody; the first to expire first. */
export async function listOpenRegistrations(
  db: Db,
  ownerId: string,
  now: number,
): Promise<Pick<RegistrationTable, 'source' | 'expires_at'>[]> {
  return await db
    .selectFrom('registrations')
    .select(['source', 'expires_at'])
    .where('owner_id', '=', ownerId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .orderBy('expires_at')
    .orderBy('id')
    .execute();
}

/** The registration with this token, whosever it is; or undefined. */
export async function findRegistrationByToken(db: Db, tokenHash: string): Promise<RegistrationTable | undefined> {
  return await db.selectFrom('registrations').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
}

const ofOrganisation = (db: Db, organisationId: string) =>
  db
    .selectFrom('registrations')
    .selectAll()
    .select((eb) => [
      eb.selectFrom('owners').select('email').whereRef('owners.id', '=', 'registrations.owner_id').as('owner_email'),
      eb
        .selectFrom('owners')
        .select('email')
        .whereRef('owners.id', '=', 'registrations.decided_by')
        .as('decided_by_email'),
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

/** An organisation's registrations, the newest first, those after `before`. */
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
  const last = before === undefined ? undefined : await findRegistration(db, organisationId, before);
  if (last)
    query = query.where((eb) =>
      eb.or([
        eb('created_at', '<', last.created_at),
        eb.and([eb('created_at', '=', last.created_at), eb('id', '<', last.id)]),
      ]),
    );
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
 * Decides a registration that still waits, in one guarded statement: of any number at once one wins. Answers whether it was
 * this one; false: it was decided, or is over.
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

/** Destroys the stored private key for whoever collects it. Answers true to exactly one caller, and only in time. */
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

/** The approved ones whose private keys nobody collected in time, and which are there still. */
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
 * Destroys the private key that an agent did not collect, if there is one, and with it the public half, which nobody could
 * sign for, unless another one was bound meanwhile. To be called in the transaction that keeps the agent from collecting it,
 * after the agent's row was changed: whoever collects goes the same way, so that nobody waits in a ring.
 */
export async function destroyUncollectedKey(db: Db, agent: { organisationId: string; id: string }): Promise<void> {
  const destroyed = await db
    .updateTable('registrations')
    .set({ private_key: null })
    .where('organisation_id', '=', agent.organisationId)
    .where('agent_id', '=', (eb) =>
      eb
        .selectFrom('agents')
        .select('agents.agent_id')
        .where('agents.organisation_id', '=', agent.organisationId)
        .where('agents.id', '=', agent.id),
    )
    .where('private_key', 'is not', null)
    .returning('id')
    .executeTakeFirst();
  if (!destroyed) return;
  await db
    .updateTable('agents')
    .set({ public_key_pem: null, key_fingerprint: null })
    .where('organisation_id', '=', agent.organisationId)
    .where('id', '=', agent.id)
    .where('status', 'not in', ['active', 'suspended'])
    .execute();
}

/** Ends the waiting of registrations whose time is over. Answers which; those at nobody have no organisation. */
export async function expireOpenRegistrations(
  db: Db,
  now: number,
): Promise<Pick<RegistrationTable, 'organisation_id' | 'id'>[]> {
  return await db
    .updateTable('registrations')
    .set({ status: 'expired' })
    .where('status', '=', 'pending')
    .where('expires_at', '<=', now)
    .returning(['organisation_id', 'id'])
    .execute();
}

/** Forgets registrations whose time was over before `before`, once no key is in them; what was decided is in the audit. */
export async function purgeRegistrations(db: Db, before: number): Promise<void> {
  await db.deleteFrom('registrations').where('expires_at', '<', before).where('private_key', 'is', null).execute();
}

/** Deletes registrations whose owner_id is nobody's, but for the `most` newest. */
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
