/** Consents started for people (specification, Per-person consent), by the hash of their token. */

import type { Db } from './store.ts';
import type { PersonConsentTable } from './tables/people.ts';

export async function putPersonConsent(db: Db, consent: PersonConsentTable): Promise<void> {
  await db.insertInto('person_consents').values(consent).execute();
}

/** Returns the consent with this token, ended ones included; undefined when there is none. */
export async function findPersonConsent(db: Db, tokenHash: string): Promise<PersonConsentTable | undefined> {
  return await db.selectFrom('person_consents').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
}

/** Returns the consent with the state of a callback, ended ones included; undefined when there is none. */
export async function findConsentOfState(db: Db, stateHash: string): Promise<PersonConsentTable | undefined> {
  return await db.selectFrom('person_consents').selectAll().where('state_hash', '=', stateHash).executeTakeFirst();
}

/** Returns the pending consent that an agent started for this person, if it does not expire before `until`. */
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

/** Counts the pending consents of an agent and its children. */
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
 * Stores the OAuth flow that the browser is sent to, replacing an earlier flow of this or another browser. `goesOn`: only if the consent is
 * bound to this browser. False: it is not, or the consent has ended.
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
 * Whether the consent is still pending and bound to this browser. Locks it, so that no other browser can start it until the transaction ends.
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

/** Consumes the flow of a callback. Returns true to exactly one caller. Its state stays, so that a page that is reloaded finds its consent. */
export async function useConsentFlow(db: Db, stateHash: string): Promise<boolean> {
  const used = await db
    .updateTable('person_consents')
    .set({ flow: null })
    .where('state_hash', '=', stateHash)
    .where('flow', 'is not', null)
    .returning('id')
    .executeTakeFirst();
  return used !== undefined;
}

/** Completes a consent; it stays bound to its browser. Returns true to exactly one caller; false: the consent has ended. */
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

/** Deletes consents that expired before `before`. */
export async function purgePersonConsents(db: Db, before: number): Promise<void> {
  await db.deleteFrom('person_consents').where('expires_at', '<', before).execute();
}
