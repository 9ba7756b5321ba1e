/** Approving by passkey (specification, Passkeys, sign/begin and sign/finish). */
import { describe, expect, test } from 'vitest';
import { moveAgent } from '../../broker/store/agents.ts';
import { expectStatus, jsonPost } from '../world/agent.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { approveWith, assertionFor, enrol, signBegin, signFinish } from '../world/passkeys.ts';
import { givenSigning, HELD } from '../world/signing.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, startWorld } from '../world/world.ts';

const ROOT = '/v1/approvals/passkeys';

describe.each(ONE_STORE)(`approving by passkey on %s${postgresNote}`, (store) => {
  const { world, organisation, agent, db, made, hold, own, refused } = givenSigning(store);
  const key = fresh(() => enrol(world, organisation));

  test('the options list the owner’s passkeys and reveal nothing of the request', async () => {
    const id = await hold();
    const { body, text } = await expectStatus(200, signBegin(world, id.toUpperCase()));
    expect(body).toEqual({
      challenge: expect.stringMatching(/^[\w-]{110}$/),
      rpId: 'localhost',
      allowCredentials: [{ id: key.credentialId, type: 'public-key', transports: ['internal', 'hybrid'] }],
      userVerification: 'preferred',
      timeout: 60_000,
    });
    expect(text).not.toMatch(/items|demo|because|tell|acme/);
  });

  test.each(['ES256', 'RS256', 'Ed25519'] as const)('a held call is approved and made, with %s', async (algorithm) => {
    const device = await enrol(world, organisation, { authenticator: made({ algorithm }) });
    const id = await hold();
    const before = world.upstream.seen.length;
    const answer = await expectStatus(200, approveWith(world, id, device));
    expect(answer.body).toEqual({ status: 'approved', approval_id: id, executed_at: expect.any(String) });
    expect(world.upstream.seen.length).toBe(before + 1);
    const { method, target, body } = world.upstream.seen.at(-1)!;
    expect([method, target, JSON.parse(body)]).toEqual(['POST', '/v1/items?notify=1', HELD.data]);
    const call = await agent.get(`/v1/approvals/${id}`);
    expect(call.body).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(call.body.executed_at).toBe(answer.body.executed_at);
    const seen = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(seen).toMatchObject({ how: 'passkey', decided_by: organisation.owner.id, status: 'approved' });
    const provenance = {
      approval_id: id,
      decided_by: organisation.owner.id,
      decided_at: seen.decided_at,
      how: 'passkey',
      request_hash: seen.request_hash,
      hold_audit_id: seen.audit_ids.held,
      passkey: { credential_id: device.credentialId, user_verified: true, counter: 'increased' },
    };
    expect((await evidenceOf(world, agent, call.body.audit_id)).payload.approval).toEqual(provenance);
    const word = await evidenceOf(world, agent, seen.audit_ids.decided);
    expect(word.payload).toMatchObject({ kind: 'event', reason: 'approval_approved' });
    expect(word.payload.approval).toEqual(provenance);
    const used = (await own()).find((one: { credential_id: string }) => one.credential_id === device.credentialId);
    expect(used).toMatchObject({ last_used_at: expect.any(String), status: 'active' });
  });

  test('AP-12 an assertion without user verification approves too, and the receipt says so', async () => {
    const id = await hold();
    expect((await approveWith(world, id, key, { uv: false })).status).toBe(200);
    const { body } = await agent.get(`/v1/approvals/${id}`);
    const { payload } = await evidenceOf(world, agent, body.audit_id);
    expect(payload.approval.passkey.user_verified).toBe(false);
  });

  test('AP-12 an organisation can require user verification', async () => {
    const id = await hold();
    const begunBefore = (await signBegin(world, id)).body;
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    expect((await signBegin(world, id)).body.userVerification).toBe('required');
    const unverified = key.get(begunBefore, { uv: false });
    await refused(id, () => signFinish(world, unverified), 400, 'verification_failed');
    expect((await approveWith(world, id, key)).status).toBe(200);
  });

  test('a decision that cannot be recorded is not made, and consumes nothing', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await whileAuditRowsAreRefused(world, async () => {
      await refused(id, () => signFinish(world, response), 503, 'audit_unavailable');
    });
    await expectStatus(200, signFinish(world, response));
  });

  test('AP-04 AP-05 approved, but no longer allowed: the decision stands, the call is not made', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const suspend = { from: ['active'], to: 'suspended', cause: 'owner_manual', detail: null } as const;
    await moveAgent(db(), { organisationId: organisation.id, id: agent.id }, suspend, Date.now());
    const answer = await withoutCalls(world, () => signFinish(world, response));
    expect(answer.body).toEqual({ status: 'approved', approval_id: id, executed_at: null });
    const seen = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(seen).toMatchObject({ status: 'approved', how: 'passkey', executed_at: null });
    expect(seen.execution_error).toMatch(/^agent_suspended: /);
    const { receipt } = (await organisation.ask('GET', `/v1/audit/${seen.audit_ids.replayed}/receipt`)).body;
    const payload = JSON.parse(Buffer.from(receipt.split('.')[1], 'base64url').toString());
    expect(payload).toMatchObject({ result: 'denied', reason: 'agent_suspended' });
    expect(payload.approval.passkey.credential_id).toBe(key.credentialId);
  });

  test('AP-21 the signer disconnects while the platform works: the call is made all the same', async () => {
    let finish = () => {};
    const asked = new Promise<void>((resolve) => {
      world.upstream.answer = (_request, response) => {
        finish = () => response.setHeader('content-type', 'application/json').end('{}');
        resolve();
      };
    });
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const gone = new AbortController();
    const asking = fetch(`${world.running.baseUrl}${ROOT}/sign/finish`, {
      ...jsonPost({ response }),
      signal: gone.signal,
    }).catch(() => 'aborted');
    await asked;
    gone.abort();
    expect(await asking).toBe('aborted');
    finish();
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', result: { status: 200 } });
  });
});

describe('a platform that is slower than the wait', () => {
  test('AP-21 after 15 seconds the answer comes without executed_at, and the call continues', {
    timeout: 180_000,
  }, async () => {
    const world = await startWorld();
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const key = await enrol(world, organisation);
    let finish = () => {};
    world.upstream.answer = (_request, response) => {
      finish = () => response.setHeader('content-type', 'application/json').end('{}');
    };
    const id = await agent.hold(HELD);
    const answer = await approveWith(world, id, key);
    expect(answer.body).toEqual({ status: 'approved', approval_id: id, executed_at: null });
    finish();
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', result: { status: 200 } });
  });
});
