/** Enrolling passkeys, and an owner's own ones (specification, Passkeys, register/begin and register/finish). */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { deleteOwner } from '../../broker/store/organisations.ts';
import type { OwnerTable } from '../../broker/store/schema.ts';
import { purgeUsedChallenges } from '../../broker/store/used-challenges.ts';
import { type Answer, send } from '../world/agent.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { fresh, givenWorld } from '../world/given.ts';
import { approveWith, enrol, post, registerBegin, registerFinish, signBegin } from '../world/passkeys.ts';
import { Authenticator, cbor } from '../world/software-authenticator.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { startWorld } from '../world/world.ts';

const ROOT = '/v1/approvals/passkeys';

describe.each(STORES)(`enrolling passkeys on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());

  const db = () => world.running.broker.store.db;
  const made = (options: { algorithm?: 'ES256' | 'RS256' | 'Ed25519'; synced?: boolean } = {}) =>
    new Authenticator(world.running.baseUrl, options);
  const own = async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys as Record<string, unknown>[];
  const finish = (response: unknown, name = 'Phone', by?: OwnerTable): Promise<Answer> =>
    registerFinish(organisation, { response, device_name: name }, by);
  const begin = async (by?: OwnerTable) => (await registerBegin(organisation, by)).body;
  const requireVerification = () =>
    organisation.ask('POST', '/owner/organisation', { require_user_verification: true });

  test('the options are those of the specification, and list what the owner has', async () => {
    const has = await enrol(world, organisation);
    const { status, body } = await registerBegin(organisation);
    expect(status).toBe(200);
    expect(body).toEqual({
      challenge: expect.stringMatching(/^[\w-]{110}$/),
      rp: { id: 'localhost', name: 'Agent Broker' },
      user: {
        id: Buffer.from(organisation.owner.id.replaceAll('-', ''), 'hex').toString('base64url'),
        name: organisation.owner.email,
        displayName: organisation.owner.email,
      },
      pubKeyCredParams: [-7, -8, -257].map((alg) => ({ alg, type: 'public-key' })),
      authenticatorSelection: { residentKey: 'preferred', requireResidentKey: false, userVerification: 'preferred' },
      timeout: 60_000,
      attestation: 'none',
      excludeCredentials: [{ id: has.credentialId, type: 'public-key', transports: ['internal', 'hybrid'] }],
      extensions: { credProps: true },
      hints: [],
    });
  });

  test.each([
    { algorithm: 'ES256', synced: false },
    { algorithm: 'RS256', synced: false },
    { algorithm: 'Ed25519', synced: true },
  ] as const)('$algorithm, synced $synced: kept as what it is', async (options) => {
    const authenticator = made(options);
    authenticator.counter = options.synced ? 0 : 41;
    await enrol(world, organisation, { authenticator, name: 'Ann’s 🔑' });
    expect(await own()).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        credential_id: authenticator.credentialId,
        device_name: 'Ann’s 🔑',
        created_at: expect.any(String),
        last_used_at: null,
        synced: options.synced,
        status: 'active',
        transports: ['internal', 'hybrid'],
        aaguid: '07070707-0707-0707-0707-070707070707',
      },
    ]);
    const stored = await db()
      .selectFrom('passkeys')
      .selectAll()
      .where('credential_id', '=', authenticator.credentialId)
      .executeTakeFirstOrThrow();
    expect(stored).toMatchObject({ owner_id: organisation.owner.id, counter: authenticator.counter });
    expect(stored.public_key.length).toBeGreaterThan(40);
  });

  test('an authenticator that names no transports, or one twice, is taken too', async () => {
    const silent = made();
    silent.transports = undefined;
    await enrol(world, organisation, { authenticator: silent });
    const twice = made();
    twice.transports = ['usb', 'usb', 'telepathy'];
    await enrol(world, organisation, { authenticator: twice });
    expect((await own()).map(({ transports }) => transports)).toEqual([[], ['usb', 'telepathy']]);
  });

  test('a key’s own attestation is taken, as browsers leave it; the broker asks for none', async () => {
    const authenticator = made();
    const options = await begin();
    const plain = authenticator.create(options);
    const clientDataHash = createHash('sha256')
      .update(Buffer.from(plain.response.clientDataJSON, 'base64url'))
      .digest();
    const { authData } = authenticator;
    const sig = authenticator.sign(Buffer.concat([authData, clientDataHash]));
    const statement = new Map<string, number | Uint8Array>([
      ['alg', -7],
      ['sig', sig],
    ]);
    const attested = authenticator.create(options, { format: 'packed', statement });
    expect((await finish(attested)).status).toBe(200);
  });

  test('it takes an owner’s session, of a role that decides', async () => {
    const viewer = await organisation.addOwner('viewer');
    const approver = await organisation.addOwner('approver');
    for (const step of ['begin', 'finish']) {
      expectEnvelope(await post(world, `${ROOT}/register/${step}`, {}), 401, 'missing_token');
      const as = (owner: OwnerTable) =>
        step === 'begin'
          ? registerBegin(organisation, owner)
          : finish(made().create({ challenge: 'x', user: { id: 'x' } }), 'x', owner);
      expectEnvelope(await as(viewer), 403, 'forbidden');
      expect((await as(approver)).status).toBe(step === 'begin' ? 200 : 400);
    }
    const agent = await organisation.agent({ grants: {} });
    expectEnvelope(await agent.request('POST', `${ROOT}/register/begin`), 401, 'invalid_token');
    await enrol(world, organisation, { by: approver });
    expect(await own(approver)).toHaveLength(1);
    expect(await own()).toEqual([]);
  });

  test.each<[string, (good: Record<string, unknown>) => unknown]>([
    ['nothing', () => ({})],
    ['no response', () => ({ device_name: 'x' })],
    ['no device_name', ({ response }) => ({ response })],
    ['an unknown member', (good) => ({ ...good, more: 1 })],
    ['a response that is no object', (good) => ({ ...good, response: 'x' })],
    ['no id', (good) => ({ ...good, response: { ...(good.response as object), id: undefined } })],
    ['another type', (good) => ({ ...good, response: { ...(good.response as object), type: 'password' } })],
    ['padding', (good) => ({ ...good, response: { ...(good.response as object), rawId: 'AA==' } })],
    ['no inner response', (good) => ({ ...good, response: { ...(good.response as object), response: {} } })],
    ['an empty name', (good) => ({ ...good, device_name: '' })],
    ['a blank name', (good) => ({ ...good, device_name: ' \u3000' })],
    ['a long name', (good) => ({ ...good, device_name: 'x'.repeat(65) })],
    ['a line feed in the name', (good) => ({ ...good, device_name: 'a\nb' })],
    ['a direction override in the name', (good) => ({ ...good, device_name: 'a\u202eb' })],
    ['an invisible character in the name', (good) => ({ ...good, device_name: 'a\u200bb' })],
    ['a line separator in the name', (good) => ({ ...good, device_name: 'a\u2028b' })],
    ['a name that is no text', (good) => ({ ...good, device_name: 1 })],
  ])('400 for %s', async (_what, bodyOf) => {
    const good = { response: made().create(await begin()), device_name: 'Phone' };
    expectEnvelope(await registerFinish(organisation, bodyOf(good)), 400, 'invalid_request');
    expect(await own()).toEqual([]);
    expect((await registerFinish(organisation, { ...good, device_name: 'x'.repeat(64) })).status).toBe(200);
  });

  test.each<[string, NonNullable<Parameters<Authenticator['create']>[1]>]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['the origin with another port', { origin: 'http://localhost:1' }],
    ['no origin', { origin: '' }],
    ['the site of the parent domain', { rpId: 'example' }],
    ['crossOrigin', { crossOrigin: true }],
    ['a crossOrigin that is no boolean', { crossOrigin: 'false' }],
    ['a topOrigin', { topOrigin: 'https://evil.example' }],
    ['another type', { type: 'webauthn.get' }],
    ['nobody there', { up: false }],
    ['backed up, but not to be', { be: false, bs: true }],
    ['a challenge that is none of ours', { challenge: randomBytes(32).toString('base64url') }],
    ['an empty challenge', { challenge: '' }],
    ['a statement with no attestation', { statement: new Map([['x', 1]]) }],
    ['an attestation by another key', { format: 'packed', statement: forged() }],
    ['an algorithm that was not offered', { publicKey: coseOf(-35) }],
    ['a key that is none', { publicKey: cbor(new Map([[1, 2]])) }],
    ['a key that is no map', { publicKey: cbor('key') }],
    ['no key at all', { publicKey: Buffer.alloc(0) }],
  ])('AP-10 %s is a 400, and nothing is enrolled', async (_what, how) => {
    const answer = await finish(made().create(await begin(), how));
    expectEnvelope(answer, 400, 'verification_failed');
    expect(await own()).toEqual([]);
  });

  // To check a certificate the library would ask addresses that it names.
  test.each<[string, NonNullable<Parameters<Authenticator['create']>[1]>]>([
    ['packed with a certificate', packedWithCertificate()],
    ['of a TPM', { format: 'tpm' }],
    ['of Android', { format: 'android-key' }],
    ['unknown', { format: 'magic' }],
  ])('an attestation that is %s is not even looked at', async (_what, how) => {
    const answer = await finish(made().create(await begin(), how));
    expectEnvelope(answer, 400, 'verification_failed');
    expect(answer.body.detail).toBe('The authenticator was asked for no attestation, but sent one.');
    expect(await own()).toEqual([]);
  });

  test.each<[string, (response: ReturnType<Authenticator['create']>) => unknown]>([
    ['an id that is another’s', (r) => ({ ...r, id: 'AAAA', rawId: 'AAAA' })],
    ['an id and a rawId that differ', (r) => ({ ...r, rawId: 'AAAA' })],
    ['client data that is no JSON', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'AAAA' } })],
    ['client data that names a member twice', (r) => ({ ...r, response: { ...r.response, ...twice(r) } })],
    ['an attestation that is no CBOR', (r) => ({ ...r, response: { ...r.response, attestationObject: 'AAAA' } })],
  ])('%s is a 400', async (_what, change) => {
    expectEnvelope(await finish(change(made().create(await begin()))), 400, 'verification_failed');
    expect(await own()).toEqual([]);
  });

  test('a challenge is its owner’s alone, and for enrolling alone', async () => {
    const colleague = await organisation.addOwner('approver');
    const stranger = await world.organisation();
    const options = await begin();
    expectEnvelope(await finish(made().create(options), 'x', colleague), 400, 'verification_failed');
    const theirs = { response: made().create(options), device_name: 'x' };
    expectEnvelope(await registerFinish(stranger, theirs), 400, 'verification_failed');
    await organisation.platform();
    const agent = await organisation.agent();
    const held = await agent.act({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' });
    await enrol(world, organisation);
    const signing = (await signBegin(world, held.body.approval_id)).body;
    expectEnvelope(
      await finish(made().create({ ...options, challenge: signing.challenge })),
      400,
      'verification_failed',
    );
    expect(await own()).toHaveLength(1);
  });

  test('a challenge lives 5 minutes, and beginning again does not end it', async () => {
    const options = await begin();
    for (let i = 0; i < 5; i++) await begin();
    const unused = await begin();
    world.clock.skewMs = 5 * MINUTE_MS - 5_000;
    expect((await finish(made().create(options))).status).toBe(200);
    world.clock.skewMs = 5 * MINUTE_MS + 1_000;
    expectEnvelope(await finish(made().create(unused)), 410, 'challenge_expired');
  });

  test('AP-19 a restart ends challenges', async () => {
    const response = made().create(await begin());
    await world.restart();
    expectEnvelope(await finish(response), 410, 'challenge_expired');
  });

  test('a challenge enrols one passkey, one after the other and at the same instant', async () => {
    const options = await begin();
    expect((await finish(made().create(options))).status).toBe(200);
    expectEnvelope(await finish(made().create(options)), 410, 'challenge_expired');
    const [{ id } = {}] = await own();
    await organisation.ask('DELETE', `/owner/passkeys/${id}`);
    expectEnvelope(await finish(made().create(options)), 410, 'challenge_expired');
    const next = await begin();
    const answers = await Promise.all(Array.from({ length: 8 }, () => finish(made().create(next))));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(410)]);
    for (const answer of answers) if (answer.status === 410) expectEnvelope(answer, 410, 'challenge_expired');
    expect(await own()).toHaveLength(1);
  });

  test('a used challenge is recorded until it has expired, and deleted after', async () => {
    const options = await begin();
    const hash = createHash('sha256').update(String(options.challenge)).digest('hex');
    const recorded = async () =>
      (await db().selectFrom('used_challenges').selectAll().where('challenge_hash', '=', hash).execute()).length;
    expect((await finish(made().create(options))).status).toBe(200);
    await purgeUsedChallenges(db(), Date.now() + 4 * MINUTE_MS);
    expect(await recorded()).toBe(1);
    expectEnvelope(await finish(made().create(options)), 410, 'challenge_expired');
    await purgeUsedChallenges(db(), Date.now() + 6 * MINUTE_MS);
    expect(await recorded()).toBe(0);
  });

  test('a challenge whose enrolment failed still enrols', async () => {
    const options = await begin();
    const enrolled = await enrol(world, organisation);
    expectEnvelope(await finish(enrolled.create(options)), 409, 'passkey_exists');
    expect((await finish(made().create(options))).status).toBe(200);
  });

  test('one credential is enrolled once, whoever comes with it, at the same instant too', async () => {
    const authenticator = made();
    const response = authenticator.create(await begin());
    const answers = await Promise.all(Array.from({ length: 8 }, () => finish(response)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
    for (const answer of answers) if (answer.status === 409) expectEnvelope(answer, 409, 'passkey_exists');
    const stranger = await world.organisation();
    const again = authenticator.create((await registerBegin(stranger)).body);
    expectEnvelope(await registerFinish(stranger, { response: again, device_name: 'x' }), 409, 'passkey_exists');
    expect(await own()).toHaveLength(1);
    // Of all that only one is on record.
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows.filter(({ reason }: { reason: string }) => reason === 'passkey_enrolled')).toHaveLength(1);
  });

  test('an owner has at most 20, also when the last ones come at once', async () => {
    for (let i = 0; i < 18; i++) await enrol(world, organisation);
    const responses = await Promise.all(Array.from({ length: 6 }, async () => made().create(await begin())));
    const answers = await Promise.all(responses.map((response) => finish(response)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409, 409, 409]);
    for (const answer of answers) if (answer.status === 409) expectEnvelope(answer, 409, 'conflict');
    expectEnvelope(await registerBegin(organisation), 409, 'conflict');
    const all = await own();
    expect(all).toHaveLength(20);
    await organisation.ask('DELETE', `/owner/passkeys/${all[0]!.id}`);
    await enrol(world, organisation);
  });

  test('AP-12 without user verification it is enrolled, unless the organisation requires it', async () => {
    await enrol(world, organisation, { how: { uv: false } });
    expect((await requireVerification()).status).toBe(200);
    const options = await begin();
    expect(options.authenticatorSelection.userVerification).toBe('required');
    expectEnvelope(await finish(made().create(options, { uv: false })), 400, 'verification_failed');
    expect((await finish(made().create(options))).status).toBe(200);
  });

  test('what cannot be recorded is not enrolled, and not removed', async () => {
    await enrol(world, organisation);
    const response = made().create(await begin());
    const [{ id } = {}] = await own();
    const mend = await refuseAuditRows(world);
    try {
      expectEnvelope(await finish(response), 503, 'audit_unavailable');
      expectEnvelope(await organisation.ask('DELETE', `/owner/passkeys/${id}`), 503, 'audit_unavailable');
    } finally {
      await mend();
    }
    expect(await own()).toHaveLength(1);
    expect((await finish(response)).status).toBe(200);
  });

  test('coming and going are on record, with receipts that hold no name', async () => {
    const authenticator = await enrol(world, organisation, { name: 'Ann’s phone' });
    const [{ id } = {}] = await own();
    world.clock.skewMs = 5;
    expect((await organisation.ask('DELETE', `/owner/passkeys/${id}`)).body).toEqual({ id, removed: true });
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows.map(({ kind, reason, detail }: Record<string, unknown>) => [kind, reason, detail])).toEqual([
      ['event', 'passkey_removed', null],
      ['event', 'passkey_enrolled', 'Ann’s phone'],
    ]);
    for (const row of rows) {
      const { receipt } = (await organisation.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
      const { payload } = await verifyReceipt(world, receipt);
      expect(payload).toMatchObject({
        kind: 'event',
        agent: null,
        organisation: organisation.id,
        change: {
          by: organisation.owner.id,
          how: 'api',
          passkey: { credential_id: authenticator.credentialId, synced: false },
        },
        row_hash: row.row_hash,
      });
      expect(JSON.stringify(payload)).not.toContain('phone');
    }
  });

  test('owners see, rename and remove their own ones, and nobody else’s', async () => {
    await enrol(world, organisation, { name: 'Phone' });
    await enrol(world, organisation, { name: 'Key' });
    const [phone, key] = await own();
    expect([phone!.device_name, key!.device_name]).toEqual(['Phone', 'Key']);
    const rename = (id: unknown, device_name: unknown, by?: OwnerTable) =>
      organisation.ask('POST', `/owner/passkeys/${id}/rename`, { device_name }, by);
    const remove = (id: unknown, by?: OwnerTable) => organisation.ask('DELETE', `/owner/passkeys/${id}`, undefined, by);
    const renamed = await rename(String(phone!.id).toUpperCase(), 'Old phone');
    expect([renamed.status, renamed.body]).toEqual([200, { ...phone, device_name: 'Old phone' }]);
    for (const wrong of ['', 'a\u202eb', 'x'.repeat(65), null])
      expectEnvelope(await rename(phone!.id, wrong), 400, 'invalid_request');
    const colleague = await organisation.addOwner('admin');
    const stranger = await world.organisation();
    for (const id of [phone!.id, 'x', crypto.randomUUID()]) {
      expectEnvelope(await rename(id, 'Mine', colleague), 404, 'not_found');
      expectEnvelope(await remove(id, colleague), 404, 'not_found');
      expectEnvelope(await stranger.ask('DELETE', `/owner/passkeys/${id}`), 404, 'not_found');
      expectEnvelope(
        await stranger.ask('POST', `/owner/passkeys/${id}/rename`, { device_name: 'Mine' }),
        404,
        'not_found',
      );
    }
    expect(await own(colleague)).toEqual([]);
    const removals = await Promise.all(Array.from({ length: 5 }, () => remove(phone!.id)));
    expect(removals.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404]);
    expect(await own()).toEqual([key]);
    const path = `/owner/passkeys/${key!.id}`;
    for (const [method, where] of [
      ['GET', '/owner/passkeys'],
      ['POST', `${path}/rename`],
      ['DELETE', path],
    ] as const)
      expectEnvelope(await send(world.running.baseUrl + where, { method }), 401, 'missing_token');
  });

  test('with an owner their passkeys go', async () => {
    const approver = await organisation.addOwner('approver');
    const authenticator = await enrol(world, organisation, { by: approver });
    await deleteOwner(db(), organisation.id, approver.id);
    const left = await db()
      .selectFrom('passkeys')
      .select('id')
      .where('credential_id', '=', authenticator.credentialId)
      .execute();
    expect(left).toEqual([]);
  });
});

describe('the limit of passkeys', () => {
  test('10 failures a minute from one address, for the four routes together; what is right passes', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const organisation = await world.organisation();
    await organisation.platform();
    const key = await enrol(world, organisation);
    const agent = await organisation.agent();
    const hold = async (): Promise<string> =>
      (await agent.act({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} })).body
        .approval_id;
    const [first, second] = [await hold(), await hold()];
    // An agent knows the ids of its own approvals: beginning on them leaves the limit as it is.
    for (let i = 0; i < 15; i++)
      expect((await post(world, `${ROOT}/sign/begin`, { approval_id: first })).status).toBe(200);
    const wrong = [
      () => organisation.ask('POST', `${ROOT}/register/finish`, {}),
      () => send(`${world.running.baseUrl}${ROOT}/register/begin`, { method: 'POST' }),
      () => post(world, `${ROOT}/sign/begin`, { approval_id: randomUUID() }),
      () => post(world, `${ROOT}/sign/finish`, {}),
    ];
    for (let i = 0; i < 10; i++) {
      const answer = await wrong[i % 4]!();
      expect(answer.status, answer.text).not.toBe(429);
      expect(answer.headers.get('ratelimit-policy')).toBe('"passkeys";q=10;w=60');
      expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`^"passkeys";r=${9 - i};`));
    }
    for (const ask of wrong) {
      const answer = await ask();
      expectEnvelope(answer, 429, 'rate_limited');
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect((await approveWith(world, second, key)).body).toMatchObject({ status: 'approved', approval_id: second });
    expect((await registerBegin(organisation)).status).toBe(200);
  });
});

/** Another algorithm on the same curve as ES256. */
function coseOf(alg: number): Buffer {
  return cbor(
    new Map<number, number | Uint8Array>([
      [1, 2],
      [3, alg],
      [-1, 1],
      [-2, randomBytes(32)],
      [-3, randomBytes(32)],
    ]),
  );
}

function forged() {
  return new Map<string, number | Uint8Array>([
    ['alg', -7],
    ['sig', randomBytes(70)],
  ]);
}

function packedWithCertificate() {
  const statement = new Map<string, number | Uint8Array>([...forged(), ['x5c', randomBytes(64)]]);
  return { format: 'packed', statement };
}

function twice(response: ReturnType<Authenticator['create']>) {
  const text = Buffer.from(response.response.clientDataJSON, 'base64url').toString();
  return {
    clientDataJSON: Buffer.from(text.replace('{', '{"origin":"https://evil.example",')).toString('base64url'),
  };
}
