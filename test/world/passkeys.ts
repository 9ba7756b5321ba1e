/** Passkeys as owners use them: enrol one, open the link of an approval, touch the authenticator. */
import { expect } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, jsonPost, send } from './agent.ts';
import { expectDeclared } from './declared-routes.ts';
import { Authenticator, type Ceremony } from './software-authenticator.ts';
import type { Organisation, World } from './world.ts';

const ROOT = '/v1/approvals/passkeys';

/** Sends a POST without authentication. `baseUrl`: of another replica. */
export async function post(
  world: World,
  path: string,
  body: unknown,
  baseUrl = world.running.baseUrl,
): Promise<Answer> {
  const answer = await send(baseUrl + path, jsonPost(body));
  expectDeclared('POST', path, answer);
  return answer;
}

export const registerBegin = (organisation: Organisation, by?: OwnerTable): Promise<Answer> =>
  organisation.ask('POST', `${ROOT}/register/begin`, undefined, by);

export const registerFinish = (organisation: Organisation, body: unknown, by?: OwnerTable): Promise<Answer> =>
  organisation.ask('POST', `${ROOT}/register/finish`, body, by);

/** Enrols an authenticator (a new one) for the organisation's owner, or for another one. */
export async function enrol(
  world: World,
  organisation: Organisation,
  {
    authenticator = new Authenticator(world.running.baseUrl),
    by = organisation.owner,
    name = 'Phone',
    how,
  }: { authenticator?: Authenticator; by?: OwnerTable; name?: string; how?: Ceremony } = {},
): Promise<Authenticator> {
  const begun = await expectStatus(200, registerBegin(organisation, by));
  const response = authenticator.create(begun.body, how);
  const finished = await expectStatus(200, registerFinish(organisation, { response, device_name: name }, by));
  expect(finished.body).toEqual({ credential_id: authenticator.credentialId, device_name: name, verified: true });
  return authenticator;
}

export const signBegin = (world: World, approvalId: unknown, baseUrl?: string): Promise<Answer> =>
  post(world, `${ROOT}/sign/begin`, { approval_id: approvalId }, baseUrl);

export const signFinish = (world: World, response: unknown, baseUrl?: string): Promise<Answer> =>
  post(world, `${ROOT}/sign/finish`, { response }, baseUrl);

/** Returns an authenticator's assertion for a fresh challenge of this approval. */
export async function assertionFor(world: World, approvalId: string, authenticator: Authenticator, how?: Ceremony) {
  const begun = await expectStatus(200, signBegin(world, approvalId));
  return authenticator.get(begun.body, how);
}

/** Approves by passkey: begin, touch, finish. */
export async function approveWith(
  world: World,
  approvalId: string,
  authenticator: Authenticator,
  how?: Ceremony,
): Promise<Answer> {
  return await signFinish(world, await assertionFor(world, approvalId, authenticator, how));
}

const ASSERT = '/owner/passkeys/assert';

export type Purpose = 'sign-in' | 'approve' | 'deny';

/** `more`: for a decision, `approval_id`, `request_hash` and optionally `note`. */
export const assertBegin = (world: World, purpose: Purpose, more: object = {}): Promise<Answer> =>
  post(world, `${ASSERT}/begin`, { purpose, ...more });

export const assertFinish = (world: World, purpose: Purpose, response: unknown, more: object = {}): Promise<Answer> =>
  post(world, `${ASSERT}/finish`, { purpose, response, ...more });

/** Returns an authenticator's assertion for a fresh challenge, for signing in or for a decision with this note. */
export async function assertion(
  world: World,
  purpose: Purpose,
  authenticator: Authenticator,
  about: { id?: string; note?: string; how?: Ceremony } = {},
) {
  const { id, note, how } = about;
  const shown = id === undefined ? undefined : await send(`${world.running.baseUrl}/approve/${id}/request`, {});
  const more = shown && { approval_id: id, request_hash: shown.body.request_hash, ...(note !== undefined && { note }) };
  const begun = await expectStatus(200, assertBegin(world, purpose, more));
  return authenticator.get(begun.body, how);
}

/** Signs in by passkey: begin, touch, finish. */
export const signInWith = async (world: World, authenticator: Authenticator, how?: Ceremony): Promise<Answer> =>
  await assertFinish(world, 'sign-in', await assertion(world, 'sign-in', authenticator, how && { how }));

/** Decides by passkey, without a session. */
export async function decideWith(
  world: World,
  purpose: 'approve' | 'deny',
  id: string,
  authenticator: Authenticator,
  { note, how }: { note?: string; how?: Ceremony } = {},
): Promise<Answer> {
  const about = { id, ...(note !== undefined && { note }), ...(how && { how }) };
  const response = await assertion(world, purpose, authenticator, about);
  return await assertFinish(world, purpose, response, note === undefined ? {} : { note });
}
