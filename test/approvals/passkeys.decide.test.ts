/** Approving and denying by passkey: POST /owner/passkeys/assert/finish without a session, and the owner routes with one. */
import { beforeAll, describe, expect, test } from 'vitest';
import { evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { assertBegin, assertFinish, assertion, decideWith, enrol } from '../world/passkeys.ts';
import { startIdentityProvider } from '../world/servers/identity-provider.ts';
import { givenSigning, HELD } from '../world/signing.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS, MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`deciding by passkey on %s${postgresNote}`, (store) => {
  const { world, organisation, agent, hold, heldCall, refused } = givenSigning(store);
  /** Not the agent's owner. */
  const approver = fresh(() => organisation.addOwner('approver'));
  const key = fresh(() => enrol(world, organisation, { by: approver }));

  test('an approver who does not own the agent denies from the link, with a reason, without a session', async () => {
    const id = await hold();
    const answer = await withoutCalls(world, () => decideWith(world, 'deny', id, key, { note: 'Ask Ann first' }));
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ approval_id: id, status: 'denied', how: 'passkey', note: 'Ask Ann first' });
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'denied' });
    const seen = await heldCall(id);
    expect(seen).toMatchObject({ decided_by: approver.id, decided_by_email: approver.email, note: 'Ask Ann first' });
    const { payload } = await evidenceOf(world, agent, seen.audit_ids.decided);
    expect(payload).toMatchObject({ kind: 'event', reason: 'approval_denied' });
    expect(payload.approval).toMatchObject({
      decided_by: approver.id,
      how: 'passkey',
      request_hash: seen.request_hash,
      passkey: { credential_id: key.credentialId, user_verified: true, counter: 'increased' },
    });
  });

  test('the same approver approves: the call is made, and both receipts name the passkey', async () => {
    const id = await hold();
    const before = world.upstream.seen.length;
    const answer = await decideWith(world, 'approve', id, key, { note: 'Go ahead' });
    expect(answer.body, answer.text).toMatchObject({ status: 'approved', how: 'passkey', note: 'Go ahead' });
    expect(answer.body.executed_at).not.toBeNull();
    expect(world.upstream.seen.length).toBe(before + 1);
    const { audit_ids } = await heldCall(id);
    for (const audit of [audit_ids.decided, audit_ids.replayed])
      expect((await evidenceOf(world, agent, audit)).payload.approval.passkey.credential_id).toBe(key.credentialId);
  });

  test('the options list no credentials, for any approval', async () => {
    const id = await hold();
    const { request_hash } = await heldCall(id);
    const { body } = await assertBegin(world, 'deny', { approval_id: id.toUpperCase(), request_hash });
    expect(body).toMatchObject({ allowCredentials: [], userVerification: 'required' });
  });

  describe('with a session', () => {
    const stepUp = (verb: string, id: string, response: unknown, more: object = {}, by = approver) =>
      organisation.ask('POST', `/owner/approvals/${id}/${verb}`, { assertion: response, ...more }, by);

    test.each([
      ['approve', 'approved'],
      ['deny', 'denied'],
    ] as const)('the owner’s route accepts the assertion to %s, and records the passkey', async (verb, status) => {
      const id = await hold();
      const response = await assertion(world, verb, key, { id, note: 'so' });
      const answer = await stepUp(verb, id, response, { note: 'so', request_hash: (await heldCall(id)).request_hash });
      expect(answer.body, answer.text).toMatchObject({ status, how: 'passkey', note: 'so', decided_by: approver.id });
      const { payload } = await evidenceOf(world, agent, answer.body.audit_ids.decided);
      expect(payload.approval.passkey.credential_id).toBe(key.credentialId);
    });

    test('refused with another owner’s session, for another call, another verb, another request', async () => {
      const [id, other] = [await hold(), await hold()];
      const response = await assertion(world, 'deny', key, { id });
      await refused(id, () => stepUp('deny', id, response, {}, organisation.owner), 400, 'verification_failed');
      await refused(other, () => stepUp('deny', other, response), 400, 'verification_failed');
      await refused(id, () => stepUp('approve', id, response), 400, 'verification_failed');
      await refused(id, () => stepUp('deny', id, response, { note: 'x' }), 400, 'verification_failed');
      const changed = { request_hash: '0'.repeat(64) };
      await refused(id, () => stepUp('deny', id, response, changed), 409, 'request_changed');
      expect((await stepUp('deny', id, response)).status).toBe(200);
    });
  });

  test('a replayed assertion is too late and reports who was first; nothing is disabled', async () => {
    const id = await hold();
    const response = await assertion(world, 'deny', key, { id });
    expect((await assertFinish(world, 'deny', response)).status).toBe(200);
    const answer = await refused(id, () => assertFinish(world, 'deny', response), 409, 'already_decided');
    expect(answer.body).toMatchObject({ status: 'denied', decided_by_email: approver.email });
    expect((await decideWith(world, 'deny', await hold(), key)).status).toBe(200);
  });

  test('AP-01 two opposite decisions concurrently: one wins, the other is told who decided', async () => {
    const mine = await enrol(world, organisation);
    for (let round = 0; round < 6; round++) {
      const id = await hold();
      const [yes, no] = [await assertion(world, 'approve', mine, { id }), await assertion(world, 'deny', key, { id })];
      const before = world.upstream.seen.length;
      const tries = [() => assertFinish(world, 'approve', yes), () => assertFinish(world, 'deny', no)];
      const [first, second] = await Promise.all((round % 2 ? tries : tries.reverse()).map((ask) => ask()));
      const [won, lost] = first!.status === 200 ? [first!, second!] : [second!, first!];
      expect(won.status, won.text).toBe(200);
      const winner = won.body.status === 'approved' ? organisation.owner.email : approver.email;
      expectEnvelope(lost, 409, 'already_decided');
      expect(lost.body.detail).toBe(`This call was ${won.body.status} already by ${winner}.`);
      expect(world.upstream.seen.length - before).toBe(won.body.status === 'approved' ? 1 : 0);
    }
  });

  test('with a session, too, the second sees who was first', async () => {
    const id = await hold();
    expect((await decideWith(world, 'deny', id, key)).status).toBe(200);
    const answer = await organisation.approve(id);
    expectEnvelope(answer, 409, 'already_decided');
    expect(answer.body.decided_by_email).toBe(approver.email);
  });

  test('expired: the challenge after five minutes, the call after its deadline, both after a restart', async () => {
    const id = await hold();
    const old = await assertion(world, 'deny', key, { id });
    world.clock.skewMs = 5 * MINUTE_MS + 1_000;
    await refused(id, () => assertFinish(world, 'deny', old), 410, 'challenge_expired');
    const before = await assertion(world, 'deny', key, { id });
    await world.restart();
    await refused(id, () => assertFinish(world, 'deny', before), 410, 'challenge_expired');
    world.clock.skewMs = DAY_MS - 10_000;
    const late = await assertion(world, 'deny', key, { id });
    world.clock.skewMs = DAY_MS + 1_000;
    await refused(id, () => assertFinish(world, 'deny', late), 410, 'approval_expired');
    const { request_hash } = await heldCall(id);
    expectEnvelope(await assertBegin(world, 'deny', { approval_id: id, request_hash }), 410, 'approval_expired');
  });

  test('a decreased counter decides nothing, disables the passkey, and is recorded with the call', async () => {
    expect((await decideWith(world, 'deny', await hold(), key)).status).toBe(200);
    const id = await hold();
    await refused(id, () => decideWith(world, 'deny', id, key, { how: { counter: 1 } }), 400, 'counter_regression');
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=200')).body;
    const row = rows.find(({ reason }: { reason: string }) => reason === 'passkey_counter_regression');
    expect(row).toMatchObject({ approval_id: id });
    await refused(id, () => decideWith(world, 'deny', id, key), 400, 'verification_failed');
  });

  test('when the organisation allows only the agent’s owner, an approver’s passkey decides with a session only', async () => {
    const set = (passkey_deciders: string) => organisation.ask('POST', '/owner/organisation', { passkey_deciders });
    expect((await set('agents_owner')).body).toMatchObject({ passkey_deciders: 'agents_owner' });
    const id = await hold();
    const page = await fetch(`${world.running.baseUrl}/approve/${id}/request`);
    expect(await page.json()).toMatchObject({ passkey_deciders: 'agents_owner' });
    await refused(id, () => decideWith(world, 'approve', id, key), 403, 'forbidden');
    await refused(id, () => decideWith(world, 'deny', id, key), 403, 'forbidden');
    const response = await assertion(world, 'deny', key, { id });
    const stepped = await organisation.deny(id, { assertion: response }, approver);
    expect(stepped.body, stepped.text).toMatchObject({ status: 'denied', how: 'passkey' });
    const own = await enrol(world, organisation);
    expect((await decideWith(world, 'deny', await hold(), own)).body).toMatchObject({ status: 'denied' });
    await set('default');
    expect((await decideWith(world, 'deny', await hold(), key)).body).toMatchObject({ status: 'denied' });
  });

  test('a decision that cannot be recorded is not made, and consumes nothing', async () => {
    const id = await hold();
    const response = await assertion(world, 'deny', key, { id });
    await whileAuditRowsAreRefused(world, async () => {
      await refused(id, () => assertFinish(world, 'deny', response), 503, 'audit_unavailable');
    });
    expect((await assertFinish(world, 'deny', response)).status).toBe(200);
  });
});

describe('where owners sign in at an identity provider', () => {
  const provider = shared(() => startIdentityProvider());
  const world = givenWorld('sqlite', () => provider.settings);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(() => provider.serve(world.running.baseUrl));

  test('without a session only the agent’s owner decides by passkey; with one, everybody who may decide', async () => {
    const agent = await organisation.agent();
    const approver = await organisation.addOwner('approver');
    const [theirs, own] = [await enrol(world, organisation, { by: approver }), await enrol(world, organisation)];
    const id = await agent.hold(HELD);
    const answer = await decideWith(world, 'deny', id, theirs);
    expectEnvelope(answer, 403, 'forbidden');
    expect(answer.body.detail).toContain('passkey_deciders');
    const response = await assertion(world, 'deny', theirs, { id });
    const stepped = await organisation.deny(id, { assertion: response }, approver);
    expect(stepped.body, stepped.text).toMatchObject({ status: 'denied', how: 'passkey' });
    expect((await decideWith(world, 'deny', await agent.hold(HELD), own)).body).toMatchObject({ status: 'denied' });
    // The organisation can allow all of them.
    await organisation.ask('POST', '/owner/organisation', { passkey_deciders: 'approvers' });
    expect((await decideWith(world, 'deny', await agent.hold(HELD), theirs)).body).toMatchObject({ status: 'denied' });
  });
});
