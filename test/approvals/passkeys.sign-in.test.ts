/** Signing in by passkey: POST /owner/passkeys/assert/begin and finish with the purpose `sign-in`. */
import { describe, expect, test } from 'vitest';
import { findOwner } from '../../broker/store/organisations.ts';
import { forgetIdentity } from '../../broker/store/owner-identities.ts';
import { removePasskey } from '../../broker/store/passkeys.ts';
import type { Db } from '../../broker/store/store.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, jsonPost, send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { assertBegin, assertFinish, assertion, enrol, registerBegin, signInWith } from '../world/passkeys.ts';
import { sized } from '../world/runner/thorough.ts';
import { startIdentityProvider } from '../world/servers/identity-provider.ts';
import { Authenticator, type Ceremony } from '../world/software-authenticator.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const cookieOf = (answer: Answer) => answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';

describe.each(ONE_STORE)(`signing in by passkey on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const key = fresh(() => enrol(world, organisation));
  const made = (options: { algorithm?: 'ES256' | 'RS256' | 'Ed25519'; synced?: boolean } = {}) =>
    new Authenticator(world.running.baseUrl, options);
  const me = (cookie: string) => send(`${world.running.baseUrl}/owner/me`, { headers: { cookie } });
  const own = async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys;
  const reasons = async () =>
    (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.map((row: { reason: string }) => row.reason);
  /** Expects a refusal without a session. */
  function refused(answer: Answer, status: number, code: string): void {
    expectEnvelope(answer, status, code);
    expect(answer.headers.getSetCookie()).toEqual([]);
  }

  test('the options list no credentials and require user verification', async () => {
    await enrol(world, organisation);
    const { body } = await expectStatus(200, assertBegin(world, 'sign-in'));
    expect(body).toEqual({
      challenge: expect.stringMatching(/^[\w-]{110}$/),
      rpId: 'localhost',
      allowCredentials: [],
      userVerification: 'required',
      timeout: 60_000,
    });
  });

  test.each(['ES256', 'RS256', 'Ed25519'] as const)(
    'an owner signs in with %s and gets an ordinary session',
    async (algorithm) => {
      const colleague = await organisation.addOwner('approver');
      const device = await enrol(world, organisation, { authenticator: made({ algorithm }), by: colleague });
      const answer = await expectStatus(200, signInWith(world, device));
      expect(answer.body).toEqual({ email: colleague.email, role: 'approver', expires_at: expect.any(String) });
      expect(answer.headers.getSetCookie()).toEqual([
        expect.stringMatching(/^svc_owner_\d+=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/),
      ]);
      expect((await me(cookieOf(answer))).body).toMatchObject({ id: colleague.id, sign_in: 'local' });
      const [passkey] = await own(colleague);
      expect(passkey).toMatchObject({ last_used_at: expect.any(String), discoverable: true });
      expect((await findOwner(world.db, colleague.id))?.last_sign_in_at).toBeGreaterThan(Date.now() - MINUTE_MS);
      const [{ reason, flags }] = (await organisation.ask('GET', '/owner/audit')).body.rows;
      expect([reason, flags.change]).toEqual([
        'owner_signed_in',
        { session: expect.any(String), sign_in: 'passkey', by: colleague.id, how: 'console' },
      ]);
    },
  );

  test('a synced passkey without a counter can sign in repeatedly', async () => {
    const phone = await enrol(world, organisation, { authenticator: made({ synced: true }) });
    for (let round = 0; round < 2; round++) expect((await signInWith(world, phone)).status).toBe(200);
  });

  test('the former session of the browser is ended', async () => {
    const before = cookieOf(await signInWith(world, key));
    const response = await assertion(world, 'sign-in', key);
    const answer = await send(
      `${world.running.baseUrl}/owner/passkeys/assert/finish`,
      jsonPost({ purpose: 'sign-in', response }, { cookie: before }),
    );
    expect(answer.status).toBe(200);
    expectEnvelope(await me(before), 401, 'token_expired');
    expect((await me(cookieOf(answer))).status).toBe(200);
  });

  test('an assertion signs in once, even with concurrent requests', async () => {
    const response = await assertion(
      world,
      'sign-in',
      await enrol(world, organisation, { authenticator: made({ synced: true }) }),
    );
    const answers = await Promise.all(Array.from({ length: 8 }, () => assertFinish(world, 'sign-in', response)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(410)]);
    for (const answer of answers) if (answer.status !== 200) refused(answer, 410, 'challenge_expired');
  });

  test('the challenge expires after five minutes, or with a restart', async () => {
    const response = await assertion(world, 'sign-in', key);
    world.clock.skewMs = 5 * MINUTE_MS + 1_000;
    refused(await assertFinish(world, 'sign-in', response), 410, 'challenge_expired');
    const again = await assertion(world, 'sign-in', key);
    await world.restart();
    refused(await assertFinish(world, 'sign-in', again), 410, 'challenge_expired');
    expect((await signInWith(world, key)).status).toBe(200);
  });

  const WRONG: [string, Ceremony][] = [
    ['a user who was not verified', { uv: false }],
    ['nobody present', { up: false }],
    ['another site', { origin: 'https://evil.test' }],
    ['a frame of another site', { crossOrigin: true }],
    ['a frame that another site is around', { topOrigin: 'https://evil.test' }],
    ['an enrolment', { type: 'webauthn.create' }],
    ['another relying party', { rpId: 'evil.test' }],
    ['somebody else’s user handle', { userHandle: Buffer.alloc(16, 1).toString('base64url') }],
    ['a challenge of nobody', { challenge: Buffer.alloc(82, 1).toString('base64url') }],
    ['a backup state that the credential cannot have', { be: true, bs: true }],
  ];
  test.each(WRONG)('%s: 400', async (_name, how) => {
    refused(await signInWith(world, key, how), 400, 'verification_failed');
    expect((await signInWith(world, key)).status).toBe(200);
  });

  test('an assertion without a user handle is refused: the credential is not discoverable', async () => {
    const response = await assertion(world, 'sign-in', key);
    const { userHandle: _, ...signed } = response.response;
    refused(await assertFinish(world, 'sign-in', { ...response, response: signed }), 400, 'verification_failed');
  });

  test('unknown, disabled, removed, with a wrong signature or handle: the same answer', async () => {
    const [disabled, removed] = [await enrol(world, organisation), await enrol(world, organisation)];
    await world.db
      .updateTable('passkeys')
      .set({ status: 'disabled' })
      .where('credential_id', '=', disabled.credentialId)
      .execute();
    const { id } = (await own()).find((one: { credential_id: string }) => one.credential_id === removed.credentialId);
    await organisation.ask('DELETE', `/owner/passkeys/${id}`);
    const unknown = made();
    unknown.userHandle = key.userHandle;
    const forged = await assertion(world, 'sign-in', key);
    forged.response.signature = unknown.sign(Buffer.from('x')).toString('base64url');
    const handle = { userHandle: Buffer.alloc(16, 1).toString('base64url') };
    const answers = [await assertFinish(world, 'sign-in', forged), await signInWith(world, key, handle)];
    for (const device of [disabled, removed, unknown]) answers.push(await signInWith(world, device));
    for (const answer of answers) refused(answer, 400, 'verification_failed');
    expect(new Set(answers.map(({ body }) => body.detail)).size).toBe(1);
  });

  test('an unknown credential takes as long as a known one with a wrong signature', async () => {
    const unknown = made();
    const time = async (device: Authenticator) => {
      const response = await assertion(world, 'sign-in', device);
      response.response.signature = made().sign(Buffer.from('x')).toString('base64url');
      const began = performance.now();
      expect((await assertFinish(world, 'sign-in', response)).status).toBe(400);
      return performance.now() - began;
    };
    const times: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] };
    for (let round = 0; round < 40; round++) {
      times.known.push(await time(key));
      times.unknown.push(await time(unknown));
    }
    const median = (of: number[]) => of.sort((a, b) => a - b)[of.length / 2]!;
    // The same order of magnitude: without the decoy key an unknown credential would skip parsing a key and verifying a signature.
    expect(median(times.unknown) / median(times.known)).toBeGreaterThan(0.6);
    expect(median(times.unknown) / median(times.known)).toBeLessThan(1.6);
  });

  test('a removed owner cannot sign in; a viewer gets a viewer’s session', async () => {
    const colleague = await organisation.addOwner('approver');
    const device = await enrol(world, organisation, { by: colleague });
    await world.db.updateTable('owners').set({ role: 'viewer' }).where('id', '=', colleague.id).execute();
    const answer = await signInWith(world, device);
    expect(answer.body).toMatchObject({ role: 'viewer' });
    expect((await me(cookieOf(answer))).body.role).toBe('viewer');
    await expectStatus(200, organisation.ask('DELETE', `/owner/owners/${colleague.id}`));
    expect(await findOwner(world.db, colleague.id)).toBeUndefined();
    refused(await signInWith(world, device), 400, 'verification_failed');
  });

  test('a decreased counter: no sign-in, the passkey is disabled, and this is recorded', async () => {
    expect((await signInWith(world, key)).status).toBe(200);
    await whileAuditRowsAreRefused(world, async () => {
      refused(await signInWith(world, key, { counter: 1 }), 503, 'audit_unavailable');
    });
    refused(await signInWith(world, key, { counter: 1 }), 400, 'counter_regression');
    expect(await own()).toMatchObject([{ status: 'disabled' }]);
    expect((await reasons()).filter((reason: string) => reason === 'passkey_counter_regression')).toHaveLength(1);
    refused(await signInWith(world, key), 400, 'verification_failed');
  });

  test('a page of another site cannot sign in', async () => {
    const response = await assertion(world, 'sign-in', key);
    const from = (headers: Record<string, string>) =>
      send(
        `${world.running.baseUrl}/owner/passkeys/assert/finish`,
        jsonPost({ purpose: 'sign-in', response }, headers),
      );
    refused(await from({ 'sec-fetch-site': 'cross-site' }), 403, 'forbidden');
    refused(await from({ origin: 'https://evil.test' }), 403, 'forbidden');
    expect((await from({ origin: world.running.baseUrl })).status).toBe(200);
  });

  test('begin stores nothing, however often it is called', async () => {
    const rows = async () => {
      const counts = [];
      for (const table of ['used_challenges', 'one_time_tokens', 'oauth_flows', 'audit_rows', 'passkeys'] as const)
        counts.push(
          (
            await world.db
              .selectFrom(table)
              .select((eb) => eb.fn.countAll().as('n'))
              .executeTakeFirstOrThrow()
          ).n,
        );
      return counts;
    };
    const before = await rows();
    for (let i = 0; i < sized(30, 300); i++) expect((await assertBegin(world, 'sign-in')).status).toBe(200);
    expect(await rows()).toEqual(before);
  });

  test('a challenge for an enrolment cannot be used to sign in', async () => {
    const { challenge } = (await registerBegin(organisation)).body;
    refused(await assertFinish(world, 'sign-in', key.get({ challenge })), 400, 'verification_failed');
  });
});

describe.runIf(STORES.includes('postgres'))(`a passkey that stops being one during the sign-in${postgresNote}`, () => {
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());

  test.each<[string, (tx: Db, owner: OwnerTable, id: string) => Promise<unknown>]>([
    ['removed', (tx, { id: ownerId }, id) => removePasskey(tx, { organisationId: organisation.id, ownerId }, id)],
    ['removed with all that the owner had', (tx, owner) => forgetIdentity(tx, owner, Date.now())],
  ])('%s: nobody is signed in', async (_how, end) => {
    const colleague = await organisation.addOwner('approver');
    const device = await enrol(world, organisation, { by: colleague });
    const [{ id }] = (await organisation.ask('GET', '/owner/passkeys', undefined, colleague)).body.passkeys;
    // The session starts after the passkey has been used, in another transaction, which waits for the row of the owner.
    const answer = await withLockContention(
      world,
      (tx) =>
        tx
          .updateTable('owners')
          .set((eb) => ({ role: eb.ref('role') }))
          .where('id', '=', colleague.id)
          .execute(),
      () => signInWith(world, device),
      { waiters: 1, last: (tx) => end(tx, colleague, id) },
    );
    expectEnvelope(answer, 400, 'verification_failed');
    expect(answer.headers.getSetCookie()).toEqual([]);
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=200')).body;
    expect(rows.filter((row: { reason: string }) => row.reason === 'owner_signed_in')).toEqual([]);
  });
});

describe('where owners sign in at an identity provider', () => {
  const provider = shared(() => startIdentityProvider());
  const world = givenWorld('sqlite', () => provider.settings);
  test('a passkey cannot sign in', async () => {
    await provider.serve(world.running.baseUrl);
    const answer = await assertBegin(world, 'sign-in');
    expectEnvelope(answer, 403, 'forbidden');
    expect(answer.body.detail).toContain(new URL(provider.issuer).host);
    const anything = new Authenticator(world.running.baseUrl).get({ challenge: 'x' });
    expectEnvelope(await assertFinish(world, 'sign-in', anything), 403, 'forbidden');
  });
});
