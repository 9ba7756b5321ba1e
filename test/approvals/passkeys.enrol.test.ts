/** Enrolling passkeys, and an owner's own ones (specification, Passkeys, register/begin and register/finish). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { enrol, post, registerBegin, registerFinish, signInWith } from '../world/passkeys.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld } from '../world/world.ts';
import { enrolling } from './enrolling.ts';

const ROOT = '/v1/approvals/passkeys';

describe.each(ONE_STORE)(`enrolling passkeys on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());
  const { made, own, begin, finish } = enrolling(world, organisation);
  const requireVerification = () =>
    organisation.ask('POST', '/owner/organisation', { require_user_verification: true });

  test('the options follow the specification, and list the owner’s passkeys', async () => {
    const has = await enrol(world, organisation);
    const { body } = await expectStatus(200, registerBegin(organisation));
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
  ] as const)('$algorithm, synced $synced: stored as such', async (options) => {
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
        discoverable: true,
        status: 'active',
        transports: ['internal', 'hybrid'],
        aaguid: '07070707-0707-0707-0707-070707070707',
      },
    ]);
    const stored = await world.db
      .selectFrom('passkeys')
      .selectAll()
      .where('credential_id', '=', authenticator.credentialId)
      .executeTakeFirstOrThrow();
    expect(stored).toMatchObject({ owner_id: organisation.owner.id, counter: authenticator.counter });
    expect(stored.public_key.length).toBeGreaterThan(40);
  });

  test.each([true, false, null])('discoverability is stored as the browser reports it: %j', async (rk) => {
    const first = await enrol(world, organisation, { how: { rk } });
    expect(await own()).toMatchObject([{ discoverable: rk }]);
    // The device of a passkey that cannot sign in may enrol another one.
    const excluded = (await begin()).excludeCredentials.map(({ id }: { id: string }) => id);
    expect(excluded).toEqual(rk === false ? [] : [first.credentialId]);
  });

  test('a passkey of unknown discoverability counts as discoverable once it has signed in', async () => {
    const device = await enrol(world, organisation, { how: { rk: null } });
    expect((await signInWith(world, device)).status).toBe(200);
    expect(await own()).toMatchObject([{ discoverable: true }]);
  });

  test('an authenticator that names no transports, or one twice, is accepted', async () => {
    const silent = made();
    silent.transports = undefined;
    await enrol(world, organisation, { authenticator: silent });
    const twice = made();
    twice.transports = ['usb', 'usb', 'telepathy'];
    await enrol(world, organisation, { authenticator: twice });
    expect((await own()).map(({ transports }) => transports)).toEqual([[], ['usb', 'telepathy']]);
  });

  test('self-attestation is accepted, as browsers pass it on; the broker requests none', async () => {
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

  test('enrolling needs an owner’s session, of a role that decides', async () => {
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

  test('a credential is enrolled once, by whichever owner, concurrently too', async () => {
    const authenticator = made();
    const response = authenticator.create(await begin());
    const answers = await Promise.all(Array.from({ length: 8 }, () => finish(response)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
    for (const answer of answers) if (answer.status === 409) expectEnvelope(answer, 409, 'passkey_exists');
    const stranger = await world.organisation();
    const again = authenticator.create((await registerBegin(stranger)).body);
    expectEnvelope(await registerFinish(stranger, { response: again, device_name: 'x' }), 409, 'passkey_exists');
    expect(await own()).toHaveLength(1);
    // Only one of them is recorded.
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows.filter(({ reason }: { reason: string }) => reason === 'passkey_enrolled')).toHaveLength(1);
  });

  test('an owner has at most 20 passkeys, even with concurrent enrolments', async () => {
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

  test('an enrolment or removal that cannot be recorded is not made', async () => {
    await enrol(world, organisation);
    const response = made().create(await begin());
    const [{ id } = {}] = await own();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await finish(response), 503, 'audit_unavailable');
      expectEnvelope(await organisation.ask('DELETE', `/owner/passkeys/${id}`), 503, 'audit_unavailable');
    });
    expect(await own()).toHaveLength(1);
    expect((await finish(response)).status).toBe(200);
  });
});
