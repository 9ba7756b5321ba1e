/** Which approvals can be signed by passkey, by whom, and for how long. */
import { describe, expect, test } from 'vitest';
import { updateAgent } from '../../broker/store/agents.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { Answer } from '../world/agent.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { approveWith, assertionFor, enrol, signBegin, signFinish } from '../world/passkeys.ts';
import { givenSigning } from '../world/signing.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS, MINUTE_MS } from '../world/times.ts';
import { fresh } from '../world/world.ts';

describe.each(ONE_STORE)(`approvals that can be signed on %s${postgresNote}`, (store) => {
  const { world, organisation, agent, db, hold, own, refused } = givenSigning(store);
  const key = fresh(() => enrol(world, organisation));

  test('AP-18 approvals that cannot be signed get the same 404, whatever the reason', async () => {
    const answers: [string, Answer][] = [];
    const begin = async (what: string, id: string) => void answers.push([what, await signBegin(world, id)]);
    const [decided, denied, other] = [await hold(), await hold(), await hold()];
    await approveWith(world, decided, key);
    await organisation.deny(denied);
    const foreign = await world.organisation();
    await foreign.platform();
    const theirs = await hold(await foreign.agent());
    await begin('unknown', crypto.randomUUID());
    await begin('approved', decided);
    await begin('denied', denied);
    await begin('its owner has no passkey', theirs);
    const viewer = await organisation.addOwner('approver');
    await enrol(world, organisation, { by: viewer });
    await db().updateTable('owners').set({ role: 'viewer' }).where('id', '=', viewer.id).execute();
    const watched = await organisation.agent();
    const seen = await hold(watched);
    await updateAgent(db(), organisation.id, watched.id, { owner_id: viewer.id });
    await begin('its owner is a viewer now', seen);
    const [{ id: passkey }] = await own();
    world.clock.skewMs = DAY_MS + 1_000;
    await begin('expired', other);
    world.clock.skewMs = 0;
    await organisation.ask('DELETE', `/owner/passkeys/${passkey}`);
    await begin('its owner removed the last one', other);
    for (const [what, answer] of answers) {
      expectEnvelope(answer, 404, 'not_found');
      const { correlation_id: _one, ...body } = answer.body;
      const { correlation_id: _other, ...first } = answers[0]![1].body;
      expect(body, what).toEqual(first);
      expect([...answer.headers.keys()].sort()).toEqual([...answers[0]![1].headers.keys()].sort());
    }
  });

  test.each([1, null, '', 'x', '{00000000-0000-0000-0000-000000000000}', `${'0'.repeat(36)}`, { id: 'x' }])(
    'AP-18 %j is not an approval id: 400',
    async (id) => {
      expectEnvelope(await signBegin(world, id), 400, 'invalid_request');
    },
  );

  test('a deleted approval is a 404', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await db().deleteFrom('approvals').where('id', '=', id).execute();
    expectEnvelope(await withoutCalls(world, () => signFinish(world, response)), 404, 'not_found');
  });

  test('a denied call is decided already: 409', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await organisation.deny(id);
    await refused(id, () => signFinish(world, response), 409, 'already_decided');
    // However old the challenge.
    world.clock.skewMs = 5 * MINUTE_MS + 1_000;
    await refused(id, () => signFinish(world, response), 409, 'already_decided');
  });

  test('AP-03 after its deadline an approval is expired, however recent the challenge', async () => {
    const id = await hold();
    world.clock.skewMs = DAY_MS - 10_000;
    const response = await assertionFor(world, id, key);
    world.clock.skewMs = DAY_MS + 1_000;
    await refused(id, () => signFinish(world, response), 410, 'approval_expired');
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'expired', executed_at: null });
  });

  test('a challenge is valid for 5 minutes; beginning again, which anybody can, does not invalidate it', async () => {
    const id = await hold();
    const old = await signBegin(world, id);
    for (let i = 0; i < 50; i++) expect((await signBegin(world, id)).status).toBe(200);
    world.clock.skewMs = 5 * MINUTE_MS + 1_000;
    await refused(id, () => signFinish(world, key.get(old.body)), 410, 'challenge_expired');
    const fresh = await signBegin(world, id);
    for (let i = 0; i < 50; i++) await signBegin(world, id);
    world.clock.skewMs += 5 * MINUTE_MS - 5_000;
    expect((await signFinish(world, key.get(fresh.body))).status).toBe(200);
  });

  test('AP-19 a restart invalidates challenges', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await world.restart();
    const answer = await signFinish(world, response);
    expectEnvelope(answer, 410, 'challenge_expired');
    expect((await approveWith(world, id, key)).status).toBe(200);
  });

  test('only the agent’s current owner can sign, and only with a role that decides', async () => {
    const successor = await organisation.addOwner('approver');
    const theirs = await enrol(world, organisation, { by: successor });
    const id = await hold();
    const mine = await assertionFor(world, id, key);
    await updateAgent(db(), organisation.id, agent.id, { owner_id: successor.id });
    await refused(id, () => signFinish(world, mine), 400, 'verification_failed');
    const response = await assertionFor(world, id, theirs);
    const become = (role: OwnerTable['role']) =>
      db().updateTable('owners').set({ role }).where('id', '=', successor.id).execute();
    await become('viewer');
    await refused(id, () => signFinish(world, response), 400, 'verification_failed');
    await become('approver');
    expect((await signFinish(world, response)).status).toBe(200);
    const seen = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(seen.decided_by).toBe(successor.id);
  });

  test('a removed passkey cannot approve, even with an earlier challenge', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const [{ id: passkey }] = await own();
    await organisation.ask('DELETE', `/owner/passkeys/${passkey}`);
    await refused(id, () => signFinish(world, response), 400, 'verification_failed');
  });
});
