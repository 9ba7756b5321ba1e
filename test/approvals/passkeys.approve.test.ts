/** Approving by passkey (specification, Passkeys, sign/begin and sign/finish). */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { moveAgent, updateAgent } from '../../broker/store/agents.ts';
import { usePasskey } from '../../broker/store/passkeys.ts';
import type { OwnerTable, PasskeyTable } from '../../broker/store/schema.ts';
import type { Answer } from '../world/agent.ts';
import { evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { fresh, givenWorld } from '../world/given.ts';
import { approveWith, assertionFor, enrol, post, registerBegin, signBegin, signFinish } from '../world/passkeys.ts';
import { Authenticator, type Ceremony, cbor } from '../world/software-authenticator.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { DAY_MS, MINUTE_MS } from '../world/times.ts';
import { startWorld } from '../world/world.ts';

const WRITE = {
  platform: 'demo',
  endpoint: '/items?notify=1',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'do not tell' },
  reason: 'because',
};
const ROOT = '/v1/approvals/passkeys';

describe.each(STORES)(`approving by passkey on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());
  const key = fresh(() => enrol(world, organisation));

  const db = () => world.running.broker.store.db;
  const made = (options: { algorithm?: 'ES256' | 'RS256' | 'Ed25519'; synced?: boolean } = {}) =>
    new Authenticator(world.running.baseUrl, options);
  async function hold(by = agent, request: Record<string, unknown> = WRITE): Promise<string> {
    const answer = await withoutCalls(world, () => by.act(request));
    expect(answer.status, answer.text).toBe(202);
    return answer.body.approval_id;
  }
  const statusOf = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body.status;
  const own = async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys;
  const events = async (reason: string) =>
    (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.filter(
      (row: { reason: string }) => row.reason === reason,
    );
  /** Refused, nothing decided, nothing sent. */
  async function refused(id: string, ask: () => Promise<Answer>, status: number, code: string): Promise<Answer> {
    const before = await statusOf(id);
    const answer = await withoutCalls(world, ask);
    expectEnvelope(answer, status, code);
    expect(await statusOf(id)).toBe(before);
    return answer;
  }

  test('the options name the owner’s passkeys and nothing of the request', async () => {
    const id = await hold();
    const { status, body, text } = await signBegin(world, id.toUpperCase());
    expect(status).toBe(200);
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
    const answer = await approveWith(world, id, device);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual({ status: 'approved', approval_id: id, executed_at: expect.any(String) });
    expect(world.upstream.seen.length).toBe(before + 1);
    const { method, target, body } = world.upstream.seen.at(-1)!;
    expect([method, target, JSON.parse(body)]).toEqual(['POST', '/v1/items?notify=1', WRITE.data]);
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

  test('AP-12 a person who was only there, not verified, approves too, and the receipt says so', async () => {
    const id = await hold();
    expect((await approveWith(world, id, key, { uv: false })).status).toBe(200);
    const { body } = await agent.get(`/v1/approvals/${id}`);
    const { payload } = await evidenceOf(world, agent, body.audit_id);
    expect(payload.approval.passkey.user_verified).toBe(false);
  });

  test('AP-12 an organisation that requires verification gets it', async () => {
    const id = await hold();
    const begunBefore = (await signBegin(world, id)).body;
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    expect((await signBegin(world, id)).body.userVerification).toBe('required');
    const unverified = key.get(begunBefore, { uv: false });
    await refused(id, () => signFinish(world, unverified), 400, 'verification_failed');
    expect((await approveWith(world, id, key)).status).toBe(200);
  });

  test('AP-11 a synced passkey keeps no counter: accepted, and the receipt says so', async () => {
    const phone = await enrol(world, organisation, { authenticator: made({ synced: true }) });
    for (let round = 0; round < 2; round++) {
      const id = await hold();
      expect((await approveWith(world, id, phone)).status).toBe(200);
      const { body } = await agent.get(`/v1/approvals/${id}`);
      const { payload } = await evidenceOf(world, agent, body.audit_id);
      expect(payload.approval.passkey.counter).toBe('not_kept');
    }
    // From the day on which it begins to count it has to go on counting.
    expect((await approveWith(world, await hold(), phone, { counter: 3 })).status).toBe(200);
    const id = await hold();
    await refused(id, () => approveWith(world, id, phone), 400, 'counter_regression');
  });

  test.each([
    ['stays', 5],
    ['goes back', 4],
    ['begins anew', 0],
  ])(
    'AP-11 a counter that %s: the attempt fails, the passkey is disabled, and it is on record',
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
      // For good: the right counter does not help, nor enrolling it again, nor removing it first.
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
      expect((await organisation.ask('DELETE', `/owner/passkeys/${(await own())[0].id}`)).status).toBe(200);
      expect(await own()).toMatchObject([{ credential_id: spare.credentialId }]);
      expectEnvelope(await organisation.ask('DELETE', `/owner/passkeys/${event.flags.passkey.id}`), 404, 'not_found');
      expectEnvelope(await again(), 409, 'passkey_exists');
      // The agent did nothing.
      const me = await agent.get('/v1/agents/me');
      expect([me.body.agent_status, me.body.halt]).toEqual(['active', undefined]);
      expect(await db().selectFrom('breakers').select('strikes').where('agent_id', '=', agent.id).execute()).toEqual(
        [],
      );
      expect((await approveWith(world, id, spare)).status).toBe(200);
    },
  );

  test('AP-11 only who can sign can make a passkey look cloned', async () => {
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

  test.each<[string, Ceremony]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['an origin that ends like ours', { origin: 'http://evil-localhost' }],
    ['the same origin with a slash', { origin: 'http://localhost/' }],
    ['no origin', { origin: '' }],
    ['the site of a parent domain', { rpId: 'example' }],
    ['another site', { rpId: 'evil.example' }],
    ['crossOrigin', { crossOrigin: true }],
    ['a crossOrigin that is no boolean', { crossOrigin: 1 }],
    ['a topOrigin', { crossOrigin: true, topOrigin: 'https://evil.example' }],
    ['a topOrigin alone', { topOrigin: 'https://evil.example' }],
    ['the type of an enrolment', { type: 'webauthn.create' }],
    ['no type', { type: '' }],
    ['nobody there', { up: false }],
    ['nobody there, but verified', { up: false, uv: true }],
    ['what cannot be copied, but is', { be: false, bs: true }],
    ['what could not be copied, and now can', { be: true, bs: true }],
    ['somebody else’s user handle', { userHandle: randomBytes(16).toString('base64url') }],
    ['an empty challenge', { challenge: '' }],
    ['a challenge that is none of ours', { challenge: randomBytes(82).toString('base64url') }],
    ['a challenge of another length', { challenge: randomBytes(32).toString('base64url') }],
  ])('AP-10 %s is a 400, and nothing comes of it', async (_what, how) => {
    const id = await hold();
    await refused(id, () => approveWith(world, id, key, how), 400, 'verification_failed');
    // It was that alone.
    expect((await approveWith(world, id, key)).status).toBe(200);
  });

  test('the refusal says to a person what was wrong', async () => {
    const id = await hold();
    const detail = async (how: Ceremony) => (await approveWith(world, id, key, how)).body.detail;
    expect(await detail({ origin: 'https://evil.example' })).toBe(
      `This was done on another site than ${world.running.baseUrl}.`,
    );
    expect(await detail({ crossOrigin: true })).toBe("This was done inside another site's page.");
    expect(await detail({ type: 'webauthn.create' })).toBe('clientDataJSON must be of type webauthn.get.');
    expect(await detail({ up: false })).toMatch(/nobody touched it/);
  });

  test.each<[string, (r: ReturnType<Authenticator['get']>) => unknown]>([
    ['a signature by nobody', (r) => ({ ...r, response: { ...r.response, signature: 'AAAA' } })],
    ['authenticator data that is cut off', (r) => ({ ...r, response: { ...r.response, authenticatorData: 'AAAA' } })],
    ['client data that is no JSON', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'AAAA' } })],
    ['client data that is a list', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'W10' } })],
    ['client data that is null', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'bnVsbA' } })],
    ['an unknown credential', (r) => ({ ...r, id: 'AAAA', rawId: 'AAAA' })],
    ['an id and a rawId that differ', (r) => ({ ...r, rawId: 'AAAA' })],
    ['an id in another spelling', (r) => ({ ...r, id: `${r.id}A`, rawId: `${r.id}A` })],
    [
      'a signature in which one bit is changed',
      (r) => ({ ...r, response: { ...r.response, signature: flip(r.response.signature) } }),
    ],
    [
      'data in which one bit is changed',
      (r) => ({ ...r, response: { ...r.response, authenticatorData: flip(r.response.authenticatorData) } }),
    ],
  ])('%s is a 400, and nothing comes of it', async (_what, change) => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await refused(id, () => signFinish(world, change(response)), 400, 'verification_failed');
    expect((await signFinish(world, response)).status).toBe(200);
  });

  test.each<[string, (good: ReturnType<Authenticator['get']>) => unknown]>([
    ['nothing', () => ({})],
    ['no object', () => []],
    ['an unknown member', (response) => ({ response, approval_id: 'x' })],
    ['an empty response', () => ({ response: {} })],
    ['no id', (r) => ({ response: { ...r, id: undefined } })],
    ['another type', (r) => ({ response: { ...r, type: 'password' } })],
    ['no client data', (r) => ({ response: { ...r, response: { ...r.response, clientDataJSON: undefined } } })],
    ['no authenticator data', (r) => ({ response: { ...r, response: { ...r.response, authenticatorData: '' } } })],
    ['no signature', (r) => ({ response: { ...r, response: { ...r.response, signature: null } } })],
    ['standard base64', (r) => ({ response: { ...r, response: { ...r.response, signature: 'a+/=' } } })],
  ])('400 for %s', async (_what, bodyOf) => {
    const id = await hold();
    const body = bodyOf(await assertionFor(world, id, key));
    await refused(id, () => post(world, `${ROOT}/sign/finish`, body), 400, 'invalid_request');
  });

  test('a body of more than 64 KiB is a 413', async () => {
    const answer = await signFinish(world, { id: 'A'.repeat(70_000) });
    expectEnvelope(answer, 413, 'payload_too_large');
  });

  test('a key that cannot verify anything is a 400, not a fault', async () => {
    const broken = made();
    const off = new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.alloc(32, 1)],
      [-3, Buffer.alloc(32, 1)],
    ]);
    const response = broken.create((await registerBegin(organisation)).body, { publicKey: cbor(off) });
    const enrolled = await organisation.ask('POST', `${ROOT}/register/finish`, { response, device_name: 'x' });
    expect(enrolled.status).toBe(200);
    const id = await hold();
    await refused(id, () => approveWith(world, id, broken), 400, 'verification_failed');
  });

  test('AP-08 an answer is good once: again it is late, and for another approval it is nothing', async () => {
    const [first, second] = [await hold(), await hold()];
    const response = await assertionFor(world, first, key);
    expect((await signFinish(world, response)).status).toBe(200);
    await refused(first, () => signFinish(world, response), 409, 'already_decided');
    // Late, not a clone.
    expect(await own()).toMatchObject([{ status: 'active' }]);
    const clientData = JSON.parse(Buffer.from(response.response.clientDataJSON, 'base64url').toString());
    const { challenge } = (await signBegin(world, second)).body;
    const moved = {
      ...response,
      response: {
        ...response.response,
        clientDataJSON: Buffer.from(JSON.stringify({ ...clientData, challenge })).toString('base64url'),
      },
    };
    await refused(second, () => signFinish(world, moved), 400, 'verification_failed');
    // Signed by the right key, but for a challenge into which somebody wrote the other approval.
    const bytes = Buffer.from((await signBegin(world, second)).body.challenge, 'base64url');
    const third = await hold();
    Buffer.from(third.replaceAll('-', ''), 'hex').copy(bytes, 10);
    const signed = key.get({ challenge: bytes.toString('base64url') });
    await refused(third, () => signFinish(world, signed), 400, 'verification_failed');
    expect((await approveWith(world, second, key)).status).toBe(200);
  });

  test('AP-08 the challenge is bound to the request: of another one nothing is approved', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const set = (request_hash: string) =>
      db().updateTable('approvals').set({ request_hash }).where('id', '=', id).execute();
    const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    await set('0'.repeat(64));
    await refused(id, () => signFinish(world, response), 400, 'verification_failed');
    await set(request_hash);
    expect((await signFinish(world, response)).status).toBe(200);
  });

  test('a challenge for an enrolment approves nothing', async () => {
    const id = await hold();
    const { challenge } = (await registerBegin(organisation)).body;
    await refused(id, () => signFinish(world, key.get({ challenge })), 400, 'verification_failed');
  });

  test('AP-09 a passkey of another owner, of the organisation or not, is told apart by nothing', async () => {
    const id = await hold();
    const { body: options } = await signBegin(world, id);
    const colleague = await enrol(world, organisation, { by: await organisation.addOwner('admin') });
    const stranger = await enrol(world, await world.organisation());
    const nobody = made();
    const answers = [];
    for (const device of [colleague, stranger, nobody]) {
      const response = device.get(options);
      answers.push(await refused(id, () => signFinish(world, response), 400, 'verification_failed'));
    }
    expect(new Set(answers.map(({ body }) => body.detail)).size).toBe(1);
  });

  test('AP-18 what cannot be signed is a 404, whatever the reason, with the same words', async () => {
    const answers: [string, Answer][] = [];
    const begin = async (what: string, id: string) => void answers.push([what, await signBegin(world, id)]);
    const [decided, denied, other] = [await hold(), await hold(), await hold()];
    await approveWith(world, decided, key);
    await organisation.ask('POST', `/owner/approvals/${denied}/deny`, {});
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
    'AP-18 %j is no id of an approval: 400',
    async (id) => {
      expectEnvelope(await signBegin(world, id), 400, 'invalid_request');
    },
  );

  test('an approval that is gone is a 404', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await db().deleteFrom('approvals').where('id', '=', id).execute();
    expectEnvelope(await withoutCalls(world, () => signFinish(world, response)), 404, 'not_found');
  });

  test('a denied call is decided: 409', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await organisation.ask('POST', `/owner/approvals/${id}/deny`, {});
    await refused(id, () => signFinish(world, response), 409, 'already_decided');
  });

  test('AP-03 after its time an approval is expired, however fresh the challenge', async () => {
    const id = await hold();
    world.clock.skewMs = DAY_MS - 10_000;
    const response = await assertionFor(world, id, key);
    world.clock.skewMs = DAY_MS + 1_000;
    await refused(id, () => signFinish(world, response), 410, 'approval_expired');
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'expired', executed_at: null });
  });

  test('a challenge lives 5 minutes; beginning again, which anybody can, does not end it', async () => {
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

  test('AP-19 a restart ends challenges', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await world.restart();
    const answer = await signFinish(world, response);
    expectEnvelope(answer, 410, 'challenge_expired');
    expect((await approveWith(world, id, key)).status).toBe(200);
  });

  test('only the agent’s owner of now, while they may decide', async () => {
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

  test('a passkey that was removed approves nothing any more, also with a challenge from before', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const [{ id: passkey }] = await own();
    await organisation.ask('DELETE', `/owner/passkeys/${passkey}`);
    await refused(id, () => signFinish(world, response), 400, 'verification_failed');
  });

  test('at the moment of the decision the passkey still has to count', async () => {
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
    await become('admin');
    for (const status of ['disabled', 'removed'] as const) {
      await set({ status });
      expect(await use(mine, 1)).toBe(false);
    }
    await set({ status: 'active' });
    expect(await use(mine, 1)).toBe(true);
    for (const counter of [1, 0]) expect(await use(mine, counter)).toBe(false);
    // The largest that there is (WebAuthn section 6.1).
    expect(await use(mine, 2 ** 32 - 1)).toBe(true);
  });

  test('a decision that cannot be recorded is not made, and uses nothing up', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const mend = await refuseAuditRows(world);
    try {
      await refused(id, () => signFinish(world, response), 503, 'audit_unavailable');
    } finally {
      await mend();
    }
    const answer = await signFinish(world, response);
    expect(answer.status, answer.text).toBe(200);
  });

  test('AP-11 a regression that cannot be recorded is a 503; the next one is on record', async () => {
    expect((await approveWith(world, await hold(), key)).status).toBe(200);
    const id = await hold();
    const response = await assertionFor(world, id, key, { counter: 1 });
    const mend = await refuseAuditRows(world);
    try {
      await refused(id, () => signFinish(world, response), 503, 'audit_unavailable');
    } finally {
      await mend();
    }
    await refused(id, () => signFinish(world, response), 400, 'counter_regression');
    expect(await events('passkey_counter_regression')).toHaveLength(1);
  });

  test('AP-04 AP-05 approved, but not allowed any more: the decision stands, the call is not made', async () => {
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

  test('AP-21 whoever signed goes away while the platform takes its time: the call is made all the same', async () => {
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
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ response }),
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

describe('a platform that takes longer than anybody waits', () => {
  test('AP-21 the answer comes after 15 seconds without executed_at, and the call goes on', {
    timeout: 60_000,
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
    const { approval_id: id } = (await agent.act(WRITE)).body;
    const answer = await approveWith(world, id, key);
    expect(answer.body).toEqual({ status: 'approved', approval_id: id, executed_at: null });
    finish();
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', result: { status: 200 } });
  });
});

/** Changes the last bit but one of the bytes. */
function flip(text: string): string {
  const bytes = Buffer.from(text, 'base64url');
  bytes[bytes.length - 1]! ^= 2;
  return bytes.toString('base64url');
}
