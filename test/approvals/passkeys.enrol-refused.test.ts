/** Refused enrolments: invalid or forged responses of authenticators, and invalid challenges. */
import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { purgeUsedChallenges } from '../../broker/store/used-challenges.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { enrol, registerFinish, signBegin } from '../world/passkeys.ts';
import { type Authenticator, cbor } from '../world/software-authenticator.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld } from '../world/world.ts';
import { enrolling } from './enrolling.ts';

describe.each(ONE_STORE)(`refused enrolments of passkeys on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());
  const { made, own, begin, finish } = enrolling(world, organisation);

  test.each<[string, (good: Record<string, unknown>) => unknown]>([
    ['an empty body', () => ({})],
    ['no response', () => ({ device_name: 'x' })],
    ['no device_name', ({ response }) => ({ response })],
    ['an unknown member', (good) => ({ ...good, more: 1 })],
    ['a response that is not an object', (good) => ({ ...good, response: 'x' })],
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
    ['a name that is not a string', (good) => ({ ...good, device_name: 1 })],
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
    ['a crossOrigin that is not a boolean', { crossOrigin: 'false' }],
    ['a topOrigin', { topOrigin: 'https://evil.example' }],
    ['another type', { type: 'webauthn.get' }],
    ['missing user presence', { up: false }],
    ['backup state without backup eligibility', { be: false, bs: true }],
    ['a challenge that was not issued here', { challenge: randomBytes(32).toString('base64url') }],
    ['an empty challenge', { challenge: '' }],
    ['a statement with no attestation', { statement: new Map([['x', 1]]) }],
    ['an attestation by another key', { format: 'packed', statement: forged() }],
    ['an algorithm that was not offered', { publicKey: coseOf(-35) }],
    ['an invalid key', { publicKey: cbor(new Map([[1, 2]])) }],
    ['a key that is not a CBOR map', { publicKey: cbor('key') }],
    ['no key at all', { publicKey: Buffer.alloc(0) }],
  ])('AP-10 %s is a 400, and nothing is enrolled', async (_what, how) => {
    const answer = await finish(made().create(await begin(), how));
    expectEnvelope(answer, 400, 'verification_failed');
    expect(await own()).toEqual([]);
  });

  // To verify a certificate the library would send requests to addresses that the certificate names.
  test.each<[string, NonNullable<Parameters<Authenticator['create']>[1]>]>([
    ['packed with a certificate', packedWithCertificate()],
    ['of a TPM', { format: 'tpm' }],
    ['of Android', { format: 'android-key' }],
    ['unknown', { format: 'magic' }],
  ])('an attestation that is %s is refused without being verified', async (_what, how) => {
    const answer = await finish(made().create(await begin(), how));
    expectEnvelope(answer, 400, 'verification_failed');
    expect(answer.body.detail).toBe('The authenticator sent an attestation, but none was requested.');
    expect(await own()).toEqual([]);
  });

  test.each<[string, (response: ReturnType<Authenticator['create']>) => unknown]>([
    ['the id of another credential', (r) => ({ ...r, id: 'AAAA', rawId: 'AAAA' })],
    ['an id and a rawId that differ', (r) => ({ ...r, rawId: 'AAAA' })],
    ['client data that is not JSON', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'AAAA' } })],
    ['client data that names a member twice', (r) => ({ ...r, response: { ...r.response, ...twice(r) } })],
    ['an attestation that is not CBOR', (r) => ({ ...r, response: { ...r.response, attestationObject: 'AAAA' } })],
  ])('%s is a 400', async (_what, change) => {
    expectEnvelope(await finish(change(made().create(await begin()))), 400, 'verification_failed');
    expect(await own()).toEqual([]);
  });

  test('a challenge is valid for its owner only, and for enrolling only', async () => {
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

  test('a challenge is valid for 5 minutes, and beginning again does not invalidate it', async () => {
    const options = await begin();
    for (let i = 0; i < 5; i++) await begin();
    const unused = await begin();
    world.clock.skewMs = 5 * MINUTE_MS - 5_000;
    expect((await finish(made().create(options))).status).toBe(200);
    world.clock.skewMs = 5 * MINUTE_MS + 1_000;
    expectEnvelope(await finish(made().create(unused)), 410, 'challenge_expired');
  });

  test('AP-19 a restart invalidates challenges', async () => {
    const response = made().create(await begin());
    await world.restart();
    expectEnvelope(await finish(response), 410, 'challenge_expired');
  });

  test('a challenge enrols one passkey, sequentially and concurrently', async () => {
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
      (await world.db.selectFrom('used_challenges').selectAll().where('challenge_hash', '=', hash).execute()).length;
    expect((await finish(made().create(options))).status).toBe(200);
    await purgeUsedChallenges(world.db, Date.now() + 4 * MINUTE_MS);
    expect(await recorded()).toBe(1);
    expectEnvelope(await finish(made().create(options)), 410, 'challenge_expired');
    await purgeUsedChallenges(world.db, Date.now() + 6 * MINUTE_MS);
    expect(await recorded()).toBe(0);
  });

  test('a challenge whose enrolment failed can still be used', async () => {
    const options = await begin();
    const enrolled = await enrol(world, organisation);
    expectEnvelope(await finish(enrolled.create(options)), 409, 'passkey_exists');
    expect((await finish(made().create(options))).status).toBe(200);
  });
});

/** Encodes the key with another algorithm for the same curve as ES256. */
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
