/** Whoever loses the role while their decision waits in the store decides nothing. */
import { describe, expect, test } from 'vitest';
import { endOwner } from '../../broker/admin/organisations/owners.ts';
import { findHeldCall } from '../../broker/store/held-calls.ts';
import { putOwner } from '../../broker/store/organisations.ts';
import { forgetIdentity } from '../../broker/store/owner-identities.ts';
import type { Db } from '../../broker/store/store.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { Answer } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared, WRITE } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(
  `a decision of somebody who loses the role meanwhile${postgresNote}`,
  () => {
    const world = givenWorld('postgres');
    const organisation = shared(() => world.demoOrganisation());
    /** Sends a request that waits for the row of the approval; `last` is committed before it continues. */
    const whileLocked = (id: string, ask: () => Promise<Answer>, last: (tx: Db) => Promise<unknown>) =>
      withLockContention(
        world,
        (tx) =>
          tx
            .updateTable('approvals')
            .set((eb) => ({ path: eb.ref('path') }))
            .where('id', '=', id)
            .execute(),
        ask,
        { waiters: 1, last },
      );

    test.each<[string, (tx: Db, owner: OwnerTable) => Promise<unknown>]>([
      ['demoted', (tx, owner) => putOwner(tx, { ...owner, role: 'viewer' })],
      ['removed', (tx, owner) => endOwner(tx, owner, organisation.owner.id, Date.now())],
      ['unlinked from the account', (tx, owner) => forgetIdentity(tx, owner, Date.now())],
    ])('an approver who is %s approves nothing', async (_what, lose) => {
      const agent = await organisation.agent();
      const id = await agent.hold(WRITE);
      const colleague = await organisation.addOwner('approver');
      const before = world.upstream.seen.length;
      const answer = await whileLocked(
        id,
        () => organisation.approve(id, {}, colleague),
        (tx) => lose(tx, colleague),
      );
      expectEnvelope(answer, 403, 'forbidden');
      expect(await findHeldCall(world.db, organisation.id, id)).toMatchObject({ status: 'pending' });
      expect(world.upstream.seen.length).toBe(before);
    });

    test('an approver who is removed corrects nothing', async () => {
      const agent = await organisation.agent();
      const id = await agent.hold(WRITE);
      const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
      const colleague = await organisation.addOwner('approver');
      const answer = await whileLocked(
        id,
        () =>
          organisation.ask('POST', `/owner/approvals/${id}/correct`, { data: { n: 'other' }, request_hash }, colleague),
        (tx) => endOwner(tx, colleague, organisation.owner.id, Date.now()),
      );
      expectEnvelope(answer, 403, 'forbidden');
      expect(await findHeldCall(world.db, organisation.id, id)).toMatchObject({ request_hash, corrected_at: null });
    });
  },
);
