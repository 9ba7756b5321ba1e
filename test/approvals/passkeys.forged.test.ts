/** Assertions that are invalid, forged, or for another purpose approve nothing. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { approveWith, assertionFor, enrol, post, registerBegin, signBegin, signFinish } from '../world/passkeys.ts';
import { givenSigning } from '../world/signing.ts';
import { type Authenticator, type Ceremony, cbor } from '../world/software-authenticator.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh } from '../world/world.ts';

const ROOT = '/v1/approvals/passkeys';

describe.each(ONE_STORE)(`forged approvals by passkey on %s${postgresNote}`, (store) => {
  const { world, organisation, db, made, hold, own, refused } = givenSigning(store);
  const key = fresh(() => enrol(world, organisation));

  test.each<[string, Ceremony]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['an origin that ends like ours', { origin: 'http://evil-localhost' }],
    ['the same origin with a slash', { origin: 'http://localhost/' }],
    ['no origin', { origin: '' }],
    ['the site of a parent domain', { rpId: 'example' }],
    ['another site', { rpId: 'evil.example' }],
    ['crossOrigin', { crossOrigin: true }],
    ['a crossOrigin that is not a boolean', { crossOrigin: 1 }],
    ['a topOrigin', { crossOrigin: true, topOrigin: 'https://evil.example' }],
    ['a topOrigin alone', { topOrigin: 'https://evil.example' }],
    ['the type of an enrolment', { type: 'webauthn.create' }],
    ['no type', { type: '' }],
    ['missing user presence', { up: false }],
    ['user verification without user presence', { up: false, uv: true }],
    ['backup state without backup eligibility', { be: false, bs: true }],
    ['a changed backup eligibility', { be: true, bs: true }],
    ['somebody else’s user handle', { userHandle: randomBytes(16).toString('base64url') }],
    ['an empty challenge', { challenge: '' }],
    ['a challenge that was not issued here', { challenge: randomBytes(82).toString('base64url') }],
    ['a challenge of another length', { challenge: randomBytes(32).toString('base64url') }],
  ])('AP-10 %s is a 400, and nothing changes', async (_what, how) => {
    const id = await hold();
    await refused(id, () => approveWith(world, id, key, how), 400, 'verification_failed');
    // Only the forged part was the reason: a correct assertion is accepted.
    expect((await approveWith(world, id, key)).status).toBe(200);
  });

  test('the refusal explains to a person what was wrong', async () => {
    const id = await hold();
    const detail = async (how: Ceremony) => (await approveWith(world, id, key, how)).body.detail;
    expect(await detail({ origin: 'https://evil.example' })).toBe(
      `The passkey was used on another site than ${world.running.baseUrl}.`,
    );
    expect(await detail({ crossOrigin: true })).toBe(
      'The passkey was used inside the page of another site (cross-origin).',
    );
    expect(await detail({ type: 'webauthn.create' })).toBe('clientDataJSON must be of type webauthn.get.');
    expect(await detail({ up: false })).toMatch(/nobody touched it/);
  });

  test.each<[string, (r: ReturnType<Authenticator['get']>) => unknown]>([
    ['an invalid signature', (r) => ({ ...r, response: { ...r.response, signature: 'AAAA' } })],
    ['authenticator data that is cut off', (r) => ({ ...r, response: { ...r.response, authenticatorData: 'AAAA' } })],
    ['client data that is not JSON', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'AAAA' } })],
    ['client data that is a list', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'W10' } })],
    ['client data that is null', (r) => ({ ...r, response: { ...r.response, clientDataJSON: 'bnVsbA' } })],
    ['an unknown credential', (r) => ({ ...r, id: 'AAAA', rawId: 'AAAA' })],
    ['an id and a rawId that differ', (r) => ({ ...r, rawId: 'AAAA' })],
    ['an id in another encoding', (r) => ({ ...r, id: `${r.id}A`, rawId: `${r.id}A` })],
    [
      'a signature with one bit changed',
      (r) => ({ ...r, response: { ...r.response, signature: flip(r.response.signature) } }),
    ],
    [
      'data with one bit changed',
      (r) => ({ ...r, response: { ...r.response, authenticatorData: flip(r.response.authenticatorData) } }),
    ],
  ])('%s is a 400, and nothing changes', async (_what, change) => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await refused(id, () => signFinish(world, change(response)), 400, 'verification_failed');
    expect((await signFinish(world, response)).status).toBe(200);
  });

  test.each<[string, (good: ReturnType<Authenticator['get']>) => unknown]>([
    ['an empty body', () => ({})],
    ['a body that is not an object', () => []],
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

  test('a key that cannot verify anything is a 400, not a 500', async () => {
    const broken = made();
    const off = new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.alloc(32, 1)],
      [-3, Buffer.alloc(32, 1)],
    ]);
    const response = broken.create((await registerBegin(organisation)).body, { publicKey: cbor(off) });
    await expectStatus(200, organisation.ask('POST', `${ROOT}/register/finish`, { response, device_name: 'x' }));
    const id = await hold();
    await refused(id, () => approveWith(world, id, broken), 400, 'verification_failed');
  });

  test('AP-08 an assertion is valid once: repeated it is too late, and for another approval it is refused', async () => {
    const [first, second] = [await hold(), await hold()];
    const response = await assertionFor(world, first, key);
    expect((await signFinish(world, response)).status).toBe(200);
    await refused(first, () => signFinish(world, response), 409, 'already_decided');
    // Too late, which does not count as a clone.
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
    // Signed by the right key, but with a challenge into which the other approval was written.
    const bytes = Buffer.from((await signBegin(world, second)).body.challenge, 'base64url');
    const third = await hold();
    Buffer.from(third.replaceAll('-', ''), 'hex').copy(bytes, 10);
    const signed = key.get({ challenge: bytes.toString('base64url') });
    await refused(third, () => signFinish(world, signed), 400, 'verification_failed');
    expect((await approveWith(world, second, key)).status).toBe(200);
  });

  test('AP-08 the challenge is bound to the request: it approves no other', async () => {
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

  test('AP-09 passkeys of other owners, of the organisation or not, all get the same answer', async () => {
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
});

/** Changes the second-last byte. */
function flip(text: string): string {
  const bytes = Buffer.from(text, 'base64url');
  bytes[bytes.length - 1]! ^= 2;
  return bytes.toString('base64url');
}
