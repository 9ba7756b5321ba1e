/** A person without tokens is deleted while a consent for them begins: the consent belongs to the person whom later calls find. */
import { describe, expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findPersonId, purgePeople, putPerson } from '../../broker/store/people.ts';
import { putPersonConsent } from '../../broker/store/person-consents.ts';
import { inTransaction } from '../../broker/store/transaction.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

const DAY_MS = 24 * 3600 * 1000;

describe.runIf(STORES.includes('postgres'))(`deleting people while consents begin${postgresNote}`, () => {
  const world = givenWorld('postgres');

  test('a person for whom a consent begins is kept', async () => {
    const organisation = await world.organisation();
    const now = Date.now();
    const person = { organisationId: organisation.id, hash: 'a'.repeat(64) };
    await putPerson(world.db, { ...person, now: now - 2 * DAY_MS });
    let purged: Promise<void> | undefined;
    const personId = await inTransaction(world.db, async (tx) => {
      const id = await putPerson(tx, { ...person, now });
      purged = purgePeople(world.db, now - DAY_MS);
      // Until the deletion has ended, or waits for this transaction.
      await Promise.race([purged, new Promise((resolve) => setTimeout(resolve, 500))]);
      await putPersonConsent(tx, {
        token_hash: uuidv4(),
        organisation_id: organisation.id,
        id: uuidv4(),
        agent_id: uuidv4(),
        family_id: uuidv4(),
        platform_id: 'docs',
        connection_id: uuidv4(),
        person_id: id,
        named_by: 'slack',
        verified: 0,
        status: 'pending',
        browser_hash: null,
        state_hash: null,
        flow: null,
        created_at: now,
        expires_at: now + DAY_MS,
      });
      return id;
    });
    await purged;
    expect(await findPersonId(world.db, organisation.id, person.hash)).toBe(personId);
    await world.db.deleteFrom('person_consents').where('organisation_id', '=', organisation.id).execute();
    await purgePeople(world.db, now - DAY_MS);
    expect(await findPersonId(world.db, organisation.id, person.hash)).toBeUndefined();
  });
});
