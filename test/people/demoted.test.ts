/** An admin who loses the role while a confirmation waits in the store confirms no account of a person. */
import { describe, expect, test } from 'vitest';
import { endOwner } from '../../broker/admin/organisations/owners.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { putOwner } from '../../broker/store/organisations.ts';
import { addPersonTokens, listGivenTokens, lockPerson, putPerson } from '../../broker/store/people.ts';
import type { Db } from '../../broker/store/store.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(`an admin who loses the role while confirming${postgresNote}`, () => {
  const world = givenWorld('postgres');
  const organisation = shared(() => world.organisation());

  test.each<[string, (tx: Db, owner: OwnerTable) => Promise<unknown>]>([
    ['demoted', (tx, owner) => putOwner(tx, { ...owner, role: 'viewer' })],
    ['removed', (tx, owner) => endOwner(tx, owner, organisation.owner.id, Date.now())],
  ])('one who is %s confirms nothing', async (what, lose) => {
    const { store, vault } = world.running.broker;
    const { db } = store;
    const [now, organisationId, id] = [Date.now(), organisation.id, uuidv4()];
    const personId = await putPerson(db, { organisationId, hash: what, now });
    const row = {
      ...{ organisation_id: organisationId, id, platform_id: 'docs', connection_id: uuidv4(), person_id: personId },
      ...{ named_by: 'slack', verified: 0 as const, agent_id: uuidv4(), created_at: now, consent_id: uuidv4() },
    } as const;
    await addPersonTokens(
      db,
      { ...row, browser_hash: null, standing: 'unconfirmed', status: 'active' },
      {
        credential: vault.seal({ table: 'person_tokens', organisationId, rowId: id }, 'token'),
        ...{ refreshToken: null, tokenId: uuidv4(), upstreamScopes: null },
        oauth: JSON.stringify({
          ...{ server: 'docs', client_id: 'c', account: 'mallory', connected_at: now, connected_by: personId },
          ...{ refreshed_at: null, expires_at: null },
        }),
      },
    );
    const colleague = await organisation.addOwner('admin');
    const answer = await withLockContention(
      world,
      (tx) => lockPerson(tx, organisationId, personId),
      () => organisation.ask('POST', `/owner/people/tokens/${id}/confirm`, {}, colleague),
      { waiters: 1, last: (tx) => lose(tx, colleague) },
    );
    expectEnvelope(answer, 403, 'forbidden');
    expect(await listGivenTokens(db, organisationId, { id })).toMatchObject([{ standing: 'unconfirmed' }]);
  });
});
