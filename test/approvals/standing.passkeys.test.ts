/** Standing approvals by passkey: the assertion is valid for exactly these terms of exactly this call. */
import { describe, expect, test } from 'vitest';
import { jsonPost, send } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { assertFinish, enrol } from '../world/passkeys.ts';
import { givenSigning, HELD } from '../world/signing.ts';
import { fresh } from '../world/world.ts';

describe('a standing approval by passkey', () => {
  const { world, organisation, agent, hold, heldCall, refused } = givenSigning('sqlite');
  const approver = fresh(() => organisation.addOwner('approver'));
  const key = fresh(() => enrol(world, organisation, { by: approver }));
  const TERMS = { count: 2, for_seconds: 3600, free: [] };

  const begin = async (id: string, more: object = {}) => {
    const { request_hash } = await heldCall(id);
    const body = { purpose: 'standing', approval_id: id, request_hash, standing: TERMS, ...more };
    const begun = await send(
      `${world.running.baseUrl}/owner/passkeys/assert/begin`,
      jsonPost(body, { origin: world.running.baseUrl }),
    );
    expect(begun.status, begun.text).toBe(200);
    return key.get(begun.body);
  };
  const stepUp = (id: string, response: unknown, more: object = {}) =>
    organisation.approve(id, { assertion: response, standing: TERMS, ...more }, approver);

  test('where user verification is required it is created, names the passkey, and lets calls pass', async () => {
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    const id = await hold();
    await refused(id, () => organisation.approve(id, { standing: TERMS }, approver), 400, 'verification_failed');
    const answer = await stepUp(id, await begin(id));
    expect(answer.body, answer.text).toMatchObject({ status: 'approved', how: 'passkey' });
    const { payload } = await evidenceOf(world, agent, answer.body.audit_ids.decided);
    expect(payload.approval.passkey.credential_id).toBe(key.credentialId);
    expect(payload.standing_approval).toMatchObject({ id: answer.body.standing_approval, count: 2 });
    expect([(await agent.act(HELD)).status, (await agent.act(HELD)).status, (await agent.act(HELD)).status]).toEqual([
      200, 200, 202,
    ]);
  });

  test('an assertion for other terms, another note, another call, or another purpose is refused', async () => {
    const [id, other] = [await hold(), await hold()];
    const response = await begin(id);
    const wrong = (of: string, more: object) =>
      refused(of, () => stepUp(of, response, more), 400, 'verification_failed');
    await wrong(id, { standing: { ...TERMS, count: 3 } });
    await wrong(id, { standing: { ...TERMS, for_seconds: 3601 } });
    await wrong(id, { standing: { count: 2, free: [], until: new Date(Date.now() + 3_600_000).toISOString() } });
    await wrong(id, { standing: { count: 2, free: [], session: true } });
    await wrong(id, { standing: { ...TERMS, free: [{ member: '/title' }] } });
    await wrong(id, { standing: undefined });
    await wrong(id, { note: 'x' });
    await wrong(other, {});
    await refused(id, () => assertFinish(world, 'approve', response), 400, 'verification_failed');
    await refused(id, () => assertFinish(world, 'deny', response), 400, 'verification_failed');
    expect((await stepUp(id, response)).status).toBe(200);
  });

  test('an assertion for the call alone creates no standing approval', async () => {
    const id = await hold();
    const response = await begin(id, { purpose: 'approve', standing: undefined });
    await refused(id, () => stepUp(id, response), 400, 'verification_failed');
  });

  test('a passkey can create one without a session, too', async () => {
    const id = await hold();
    const response = await begin(id, { note: 'so' });
    const answer = await send(
      `${world.running.baseUrl}/owner/passkeys/assert/finish`,
      jsonPost({ purpose: 'standing', response, standing: TERMS, note: 'so' }, { origin: world.running.baseUrl }),
    );
    expect(answer.body, answer.text).toMatchObject({ status: 'approved', standing_approval: expect.any(String) });
  });
});
