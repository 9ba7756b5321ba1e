/** Consents that were begun for people (specification, Per-person consent), by the hash of their token. */

import type { Db } from './store.ts';
import type { PersonConsentTable } from './tables/people.ts';

export async function putPersonConsent(db: Db, consent: PersonConsentTable): Promise<void> {
  await db.insertInto('person_consents').values(consent).execute();
}

/** The consent with this token, over or not; or undefined. */
export async function findPersonConsent(db: Db, tokenHash: string): Promise<PersonConsentTable | undefined> {
  return await db.selectFrom('person_consents').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
}

/** The consent to which the state of a callback belongs, over or not; or undefined. */
export async function findConsentOfState(db: Db, stateHash: string): Promise<PersonConsentTable | undefined> {
  return await db.selectFrom('person_consents').selectAll().where('state_hash', '=', stateHash).executeTakeFirst();
}

/** The pending one that an agent began for this person, of which much is left: until after `until`. */
export async function findOpenConsent(
  db: Db,
  { organisationId, agentId, connectionId, personId }: OpenConsent,
  until: number,
): Promise<PersonConsentTable | undefined> {
  return await db
    .selectFrom('person_consents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentId)
    .where('connection_id', '=', connectionId)
    .where('person_id', '=', personId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', until)
    .orderBy('expires_at', 'desc')
    .executeTakeFirst();
}

export type OpenConsent = { organisationId: string; agentId: string; connectionId: string; personId: string };

/** How many of an agent and its children are pending. */
export async function countOpenConsents(
  db: Db,
  organisationId: string,
  familyId: string,
  now: number,
): Promise<number> {
  const row = await db
    .selectFrom('person_consents')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('organisation_id', '=', organisationId)
    .where('family_id', '=', familyId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/**
 * Where the browser is sent next, instead of where it, or another one, was sent before. `goesOn`: only as long as the consent is this
 * browser's. False: it is not, or is over.
 */
export async function putConsentFlow(
  db: Db,
  id: string,
  flow: { browserHash: string; stateHash: string; flow: Buffer; now: number; goesOn: boolean },
): Promise<boolean> {
  let query = db
    .updateTable('person_consents')
    .set({ browser_hash: flow.browserHash, state_hash: flow.stateHash, flow: flow.flow })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .where('expires_at', '>', flow.now);
  if (flow.goesOn) query = query.where('browser_hash', '=', flow.browserHash);
  return (await query.returning('id').executeTakeFirst()) !== undefined;
}

/**
 * In a transaction: whether the consent is still this browser's, and waits; no other browser begins it until the transaction ends.
 */
export async function holdConsent(
  db: Db,
  id: string,
  { browserHash, now }: { browserHash: string; now: number },
): Promise<boolean> {
  const held = await db
    .updateTable('person_consents')
    .set({ browser_hash: browserHash })
    .where('id', '=', id)
    .where('browser_hash', '=', browserHash)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst();
  return held !== undefined;
}

/** Consumes the flow of a callback. True to exactly one caller. */
export async function useConsentFlow(db: Db, stateHash: string): Promise<boolean> {
  const used = await db
    .updateTable('person_consents')
    .set({ state_hash: null, flow: null })
    .where('state_hash', '=', stateHash)
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

/** Completes it; in which browser is kept. True to exactly one caller; false: it is over. */
export async function completeConsent(db: Db, id: string, now: number): Promise<boolean> {
  const completed = await db
    .updateTable('person_consents')
    .set({ status: 'completed', state_hash: null, flow: null })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst();
  return completed !== undefined;
}

/** Deletes what was over before `before`. */
export async function purgePersonConsents(db: Db, before: number): Promise<void> {
  await db.deleteFrom('person_consents').where('expires_at', '<', before).execute();
}
