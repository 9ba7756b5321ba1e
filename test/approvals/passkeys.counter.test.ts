/** Signature counters of passkeys: a passkey whose counter does not increase may have been cloned, and is disabled. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { disableRegressed, usePasskey } from '../../broker/store/passkeys.ts';
import type { PasskeyTable } from '../../broker/store/tables/approvals.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import {
  approveWith,
  assertionFor,
  decideWith,
  enrol,
  registerBegin,
  signBegin,
  signFinish,
  signInWith,
} from '../world/passkeys.ts';
import { givenSigning } from '../world/signing.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh } from '../world/world.ts';

const ROOT = '/v1/approvals/passkeys';

describe.each(STORES)(`counters of passkeys on %s${postgresNote}`, (store) => {
  const { world, organisation, agent, db, made, hold, own, events, refused } = givenSigning(store);
  const key = fresh(() => enrol(world, organisation));

  test('AP-11 a synced passkey without a counter is accepted, and the receipt says so', async () => {
    const phone = await enrol(world, organisation, { authenticator: made({ synced: true }) });
    for (let round = 0; round < 2; round++) {
      const id = await hold();
      expect((await approveWith(world, id, phone)).status).toBe(200);
      const { body } = await agent.get(`/v1/approvals/${id}`);
      const { payload } = await evidenceOf(world, agent, body.audit_id);
      expect(payload.approval.passkey.counter).toBe('not_kept');
    }
    // Once its counter is above zero, it has to keep increasing.
    expect((await approveWith(world, await hold(), phone, { counter: 3 })).status).toBe(200);
    const id = await hold();
    await refused(id, () => approveWith(world, id, phone), 400, 'counter_regression');
  });

  test.each([
    ['stays the same', 5],
    ['decreases', 4],
    ['restarts at 0', 0],
  ])(
    'AP-11 a counter that %s: the attempt fails, the passkey is disabled, and this is recorded',
    async (_how, counter) => {
      key.counter = 4;
      expect((await approveWith(world, await hold(), key)).status).toBe(200);
      const id = await hold();
      await refused(id, () => approveWith(world, id, key, { counter }), 400, 'counter_regression');
      expect(await own()).toMatchObject([{ credential_id: key.credentialId, status: 'disabled' }]);
      const [event, ...more] = await events('passkey_counter_regression');
      expect(more).toEqual([]);
      expect(event).toMatchObject({
        kind: 'event',
        result: null,
        approval_id: id,
        agent_id: agent.id,
        flags: {
          passkey: {
            owner: organisation.owner.id,
            credential_id: key.credentialId,
            device_name: 'Phone',
            stored_counter: 5,
            reported_counter: counter,
          },
        },
      });
      const { payload } = await evidenceOf(world, agent, event.id);
      expect(payload).toMatchObject({
        kind: 'event',
        reason: 'passkey_counter_regression',
        approval: { approval_id: id },
      });
      expect(payload.approval).toEqual({ approval_id: id });
      // Permanently: neither the right counter helps, nor enrolling it again, nor removing it first.
      expectEnvelope(await signBegin(world, id), 404, 'not_found');
      const spare = await enrol(world, organisation);
      const options = (await signBegin(world, id)).body;
      expect(options.allowCredentials).toMatchObject([{ id: spare.credentialId }]);
      await refused(id, () => signFinish(world, key.get(options, { counter: 99 })), 400, 'verification_failed');
      const again = async () => {
        const response = key.create((await registerBegin(organisation)).body);
        return organisation.ask('POST', `${ROOT}/register/finish`, { response, device_name: 'Again' });
      };
      expectEnvelope(await again(), 409, 'passkey_exists');
      const colleague = await organisation.addOwner('admin');
      const foreign = organisation.ask('DELETE', `/owner/passkeys/${event.flags.passkey.id}`, undefined, colleague);
      expectEnvelope(await foreign, 404, 'not_found');
      expect((await organisation.ask('DELETE', `/owner/passkeys/${(await own())[0].id}`)).status).toBe(200);
      expect(await own()).toMatchObject([{ credential_id: spare.credentialId }]);
      expectEnvelope(await organisation.ask('DELETE', `/owner/passkeys/${event.flags.passkey.id}`), 404, 'not_found');
      const rename = organisation.ask('POST', `/owner/passkeys/${event.flags.passkey.id}/rename`, { device_name: 'x' });
      expectEnvelope(await rename, 404, 'not_found');
      expectEnvelope(await again(), 409, 'passkey_exists');
      // The agent's breaker is not affected.
      const me = await agent.get('/v1/agents/me');
      expect([me.body.agent_status, me.body.halt]).toEqual(['active', undefined]);
      expect(await db().selectFrom('breakers').select('strikes').where('agent_id', '=', agent.id).execute()).toEqual(
        [],
      );
      expect((await approveWith(world, id, spare)).status).toBe(200);
    },
  );

  test('AP-11 only a valid signature can mark a passkey as cloned', async () => {
    expect((await approveWith(world, await hold(), key)).status).toBe(200);
    const id = await hold();
    const response = await assertionFor(world, id, key, { counter: 1 });
    const forged = {
      ...response,
      response: { ...response.response, signature: randomBytes(70).toString('base64url') },
    };
    await refused(id, () => signFinish(world, forged), 400, 'verification_failed');
    expect(await own()).toMatchObject([{ status: 'active' }]);
    expect(await events('passkey_counter_regression')).toEqual([]);
  });

  test('usePasskey, in the deciding transaction, rechecks the owner, the agent, the role, the status and the counter', async () => {
    const colleague = await organisation.addOwner('approver');
    await enrol(world, organisation, { by: colleague });
    const rows = await db().selectFrom('passkeys').selectAll().where('organisation_id', '=', organisation.id).execute();
    const [mine, theirs] = [organisation.owner.id, colleague.id].map((id) => rows.find((row) => row.owner_id === id)!);
    const use = (passkey: PasskeyTable | undefined, counter: number, agentUuid = agent.id) =>
      usePasskey(db(), passkey!, { counter, at: Date.now(), agentUuid });
    const set = (change: Partial<PasskeyTable>) =>
      db().updateTable('passkeys').set(change).where('id', '=', mine!.id).execute();
    const become = (role: OwnerTable['role']) =>
      db().updateTable('owners').set({ role }).where('id', '=', organisation.owner.id).execute();
    expect(await use(theirs, 1)).toBe(false);
    expect(await use(mine, 1, crypto.randomUUID())).toBe(false);
    await become('viewer');
    expect(await use(mine, 1)).toBe(false);
    expect(await usePasskey(db(), mine!, { counter: 1, at: Date.now(), may: 'decide' })).toBe(false);
    await become('admin');
    for (const status of ['disabled', 'removed'] as const) {
      await set({ status });
      expect(await use(mine, 1)).toBe(false);
    }
    await set({ status: 'active' });
    expect(await use(mine, 1)).toBe(true);
    for (const counter of [1, 0]) expect(await use(mine, counter)).toBe(false);
    // The maximum (WebAuthn section 6.1).
    expect(await use(mine, 2 ** 32 - 1)).toBe(true);
    // A passkey without a counter is not taken for a clone when it is refused for another reason.
    expect(await disableRegressed(db(), theirs!, 0)).toBeUndefined();
  });

  test('the first use of a passkey since a restore is recorded once, whatever it is used for', async () => {
    const mark = () =>
      db().updateTable('passkeys').set({ restored_counter: 5 }).where('credential_id', '=', key.credentialId).execute();
    const uses: [string, () => Promise<{ status: number }>][] = [
      ['an approval', async () => await approveWith(world, await hold(), key)],
      ['a decision', async () => await decideWith(world, 'deny', await hold(), key)],
      ['a sign-in', async () => await signInWith(world, key)],
    ];
    for (const [at, [what, use]] of uses.entries()) {
      await mark();
      for (let round = 0; round < 2; round++) expect((await use()).status, what).toBe(200);
      expect(await events('passkey_counter_restored'), what).toHaveLength(at + 1);
    }
  });

  test('AP-11 a regression that cannot be recorded is a 503; the next attempt records it', async () => {
    expect((await approveWith(world, await hold(), key)).status).toBe(200);
    const id = await hold();
    const response = await assertionFor(world, id, key, { counter: 1 });
    await whileAuditRowsAreRefused(world, async () => {
      await refused(id, () => signFinish(world, response), 503, 'audit_unavailable');
    });
    await refused(id, () => signFinish(world, response), 400, 'counter_regression');
    expect(await events('passkey_counter_regression')).toHaveLength(1);
  });
});
