/** The passkey routes of owners, their audit rows, and the limits. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { deleteOwner } from '../../broker/store/organisations.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { jsonPost, send } from '../world/agent.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { approveWith, enrol, post, registerBegin } from '../world/passkeys.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, startWorld } from '../world/world.ts';

const ROOT = '/v1/approvals/passkeys';
const ASSERT = '/owner/passkeys/assert';

describe.each(STORES)(`the passkeys of owners on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());
  const own = async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys as Record<string, unknown>[];

  test('adding, renaming and removing passkeys is recorded, with receipts that hold no device name', async () => {
    const authenticator = await enrol(world, organisation, { name: 'Ann’s phone' });
    const [{ id } = {}] = await own();
    world.clock.skewMs = 5;
    const renamed = await organisation.ask('POST', `/owner/passkeys/${id}/rename`, { device_name: 'Bob’s phone' });
    expect(renamed.status).toBe(200);
    world.clock.skewMs = 10;
    expect((await organisation.ask('DELETE', `/owner/passkeys/${id}`)).body).toEqual({ id, removed: true });
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows.map(({ kind, reason, detail }: Record<string, unknown>) => [kind, reason, detail])).toEqual([
      ['event', 'passkey_removed', null],
      ['event', 'passkey_renamed', 'Bob’s phone'],
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

  test('owners list, rename and remove their own passkeys only', async () => {
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

  test('removing an owner removes their passkeys', async () => {
    const approver = await organisation.addOwner('approver');
    const authenticator = await enrol(world, organisation, { by: approver });
    await deleteOwner(world.db, organisation.id, approver.id, Date.now());
    const left = await world.db
      .selectFrom('passkeys')
      .select('id')
      .where('credential_id', '=', authenticator.credentialId)
      .execute();
    expect(left).toEqual([]);
  });
});

describe('the limits of passkey routes', () => {
  test('sign/begin accepts 10 requests a minute for one approval from one address, register/begin 10 of one owner', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1', TRUSTED_PROXIES: '127.0.0.1/32' });
    const organisation = await world.organisation();
    await organisation.platform();
    const key = await enrol(world, organisation);
    const agent = await organisation.agent();
    const hold = () =>
      agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} });
    const first = await hold();
    const begin = (approval: string, from = '198.51.100.1') =>
      send(
        `${world.running.baseUrl}${ROOT}/sign/begin`,
        jsonPost({ approval_id: approval }, { 'x-forwarded-for': from }),
      );
    for (let i = 0; i < 10; i++) expect((await begin(first)).status).toBe(200);
    const refused = await begin(first.toUpperCase());
    expectEnvelope(refused, 429, 'rate_limited');
    expect(refused.headers.get('ratelimit-policy')).toBe('"passkey-begins";q=10;w=60');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await begin(first, '198.51.100.2')).status).toBe(200);
    // Many approvals in a row from one address succeed.
    for (let i = 0; i < 15; i++)
      expect((await approveWith(world, await hold(), key)).body).toMatchObject({ status: 'approved' });
    // Enrolling has used one already.
    for (let i = 0; i < 9; i++) expect((await registerBegin(organisation)).status).toBe(200);
    expectEnvelope(await registerBegin(organisation), 429, 'rate_limited');
    const colleague = await organisation.addOwner('approver');
    expect((await registerBegin(organisation, colleague)).status).toBe(200);
  });

  test('10 failures a minute from one address, for the four routes together and for the two that assert; valid requests pass', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const organisation = await world.organisation();
    await organisation.platform();
    const key = await enrol(world, organisation);
    const agent = await organisation.agent();
    const hold = () =>
      agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} });
    const [first, second] = [await hold(), await hold()];
    // An agent knows the ids of its own approvals: begins for them do not count here.
    for (let i = 0; i < 10; i++)
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
    // Signing in, and deciding without a session, have a limit of their own.
    const begin = () => post(world, `${ASSERT}/begin`, { purpose: 'sign-in' });
    for (let i = 0; i < 15; i++) expect((await begin()).status).toBe(200);
    const ask = { purpose: 'deny', approval_id: randomUUID(), request_hash: 'f'.repeat(64) };
    const guesses = [
      () => post(world, `${ASSERT}/begin`, ask),
      () => post(world, `${ASSERT}/finish`, { purpose: 'sign-in', response: {} }),
    ];
    for (let i = 0; i < 10; i++) {
      const answer = await guesses[i % 2]!();
      expect(answer.status, answer.text).not.toBe(429);
      expect(answer.headers.get('ratelimit-policy')).toBe('"passkey-assertions";q=10;w=60');
    }
    for (const guess of guesses) expectEnvelope(await guess(), 429, 'rate_limited');
    expect((await begin()).status).toBe(200);
  });
});
