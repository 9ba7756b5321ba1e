/** Refused decisions by passkey: for another purpose, by somebody without the right, or invalid. */
import { describe, expect, test } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { Answer } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import {
  assertBegin,
  assertFinish,
  assertion,
  assertionFor,
  decideWith,
  enrol,
  type Purpose,
  signFinish,
} from '../world/passkeys.ts';
import { givenSigning } from '../world/signing.ts';
import { Authenticator, type Ceremony } from '../world/software-authenticator.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh } from '../world/world.ts';

describe.each(ONE_STORE)(`refused decisions by passkey on %s${postgresNote}`, (store) => {
  const { world, organisation, db, hold, heldCall, refused } = givenSigning(store);
  /** Not the agent's owner. */
  const approver = fresh(() => organisation.addOwner('approver'));
  const key = fresh(() => enrol(world, organisation, { by: approver }));
  const become = (role: OwnerTable['role']) =>
    db().updateTable('owners').set({ role }).where('id', '=', approver.id).execute();

  test('an assertion for one purpose is refused for every other', async () => {
    const id = await hold();
    const mine = await enrol(world, organisation, {
      authenticator: new Authenticator(world.running.baseUrl, { synced: true }),
    });
    const made: Record<string, () => Promise<unknown>> = {
      'sign-in': () => assertion(world, 'sign-in', mine),
      approve: () => assertion(world, 'approve', mine, { id }),
      deny: () => assertion(world, 'deny', mine, { id }),
      sign: () => assertionFor(world, id, mine),
      register: async () =>
        mine.get({
          challenge: (await organisation.ask('POST', '/v1/approvals/passkeys/register/begin')).body.challenge,
        }),
    };
    const purposes: Purpose[] = ['sign-in', 'approve', 'deny'];
    const taken: Record<string, (response: unknown) => Promise<Answer>> = {
      ...Object.fromEntries(purposes.map((one) => [one, (response: unknown) => assertFinish(world, one, response)])),
      sign: (response) => signFinish(world, response),
      'approve with a session': (assertion) => organisation.approve(id, { assertion }),
      'deny with a session': (assertion) => organisation.deny(id, { assertion }),
    };
    let pairs = 0;
    for (const [from, make] of Object.entries(made))
      for (const [to, take] of Object.entries(taken)) {
        if (to.split(' ')[0] === from) continue;
        const answer = await refused(id, async () => take(await make()), 400, 'verification_failed');
        expect(answer.headers.getSetCookie(), `${from} for ${to}`).toEqual([]);
        pairs++;
      }
    expect(pairs).toBe(24);
    expect((await taken.deny!(await made.deny!())).status).toBe(200);
  });

  test('refused for another approval, after the note was changed, or with an altered challenge', async () => {
    const [id, other] = [await hold(), await hold()];
    const response = await assertion(world, 'deny', key, { id, note: 'wrong recipient' });
    for (const note of [undefined, 'Wrong recipient', 'wrong recipient '])
      await refused(
        id,
        () => assertFinish(world, 'deny', response, note === undefined ? {} : { note }),
        400,
        'verification_failed',
      );
    const { request_hash } = await heldCall(id);
    const begun = await assertBegin(world, 'deny', { approval_id: id, request_hash });
    const bytes = Buffer.from(begun.body.challenge, 'base64url');
    Buffer.from(other.replaceAll('-', ''), 'hex').copy(bytes, 10);
    const moved = key.get({ challenge: bytes.toString('base64url') });
    await refused(other, () => assertFinish(world, 'deny', moved), 400, 'verification_failed');
    const turned = Buffer.from(begun.body.challenge, 'base64url');
    turned[1] = 3;
    const approving = key.get({ challenge: turned.toString('base64url') });
    await refused(id, () => assertFinish(world, 'approve', approving), 400, 'verification_failed');
    expect((await assertFinish(world, 'deny', response, { note: 'wrong recipient' })).status).toBe(200);
    expect((await heldCall(other)).status).toBe('pending');
  });

  test('with another request than the current one neither begin nor finish succeeds', async () => {
    const id = await hold();
    const wrong = { approval_id: id, request_hash: '0'.repeat(64) };
    expectEnvelope(await assertBegin(world, 'approve', wrong), 409, 'request_changed');
    const response = await assertion(world, 'approve', key, { id });
    const { request_hash } = await heldCall(id);
    const set = (hash: string) =>
      db().updateTable('approvals').set({ request_hash: hash }).where('id', '=', id).execute();
    await set('0'.repeat(64));
    await refused(id, () => assertFinish(world, 'approve', response), 400, 'verification_failed');
    await set(request_hash);
    expect((await assertFinish(world, 'approve', response)).status).toBe(200);
  });

  test('a user of another organisation gets the same answer as for a call that does not exist', async () => {
    const elsewhere = await world.demoOrganisation();
    const stranger = await enrol(world, elsewhere);
    const id = await hold();
    const answer = await refused(id, () => decideWith(world, 'deny', id, stranger), 400, 'verification_failed');
    expect(answer.text).not.toContain('organisation');
    const response = await assertion(world, 'deny', key, { id });
    await db().deleteFrom('approvals').where('id', '=', id).execute();
    const { status, body } = await assertFinish(world, 'deny', response);
    expect([status, body.error, body.detail]).toEqual([400, answer.body.error, answer.body.detail]);
  });

  test('a viewer, a removed owner and a removed passkey are refused; an approver again succeeds', async () => {
    const id = await hold();
    await become('viewer');
    const answer = await refused(id, () => decideWith(world, 'deny', id, key), 403, 'forbidden');
    expect(answer.body.detail).toContain('viewer');
    await become('approver');
    const [{ id: passkey }] = (await organisation.ask('GET', '/owner/passkeys', undefined, approver)).body.passkeys;
    const second = await enrol(world, organisation, { by: approver });
    const begun = await assertion(world, 'deny', key, { id });
    await organisation.ask('DELETE', `/owner/passkeys/${passkey}`, undefined, approver);
    await refused(id, () => assertFinish(world, 'deny', begun), 400, 'verification_failed');
    const removed = await organisation.addOwner('approver');
    const theirs = await enrol(world, organisation, { by: removed });
    const last = await assertion(world, 'deny', theirs, { id });
    expect((await organisation.ask('DELETE', `/owner/owners/${removed.id}`)).status).toBe(200);
    await refused(id, () => assertFinish(world, 'deny', last), 400, 'verification_failed');
    expect((await decideWith(world, 'deny', id, second)).status).toBe(200);
  });

  const WRONG: [string, Ceremony][] = [
    ['a user who was not verified', { uv: false }],
    ['another site', { origin: 'https://evil.test' }],
    ['a frame of another site', { crossOrigin: true }],
    ['somebody else’s user handle', { userHandle: Buffer.alloc(16, 1).toString('base64url') }],
  ];
  test.each(WRONG)('%s: 400', async (_name, how) => {
    const id = await hold();
    await refused(id, () => decideWith(world, 'approve', id, key, { how }), 400, 'verification_failed');
  });
});
