/** Passkeys: enrolment by owners, and approval by the holder of the owner's authenticator (specification, Passkeys). */
import { z } from 'zod';
import { afterReplay } from '../../approvals/decide.ts';
import { approveByPasskey, beginSigning } from '../../approvals/passkeys/approval.ts';
import { UNKNOWN_PERSON } from '../../approvals/passkeys/challenge.ts';
import { beginEnrolment, enrolPasskey, MAX_PASSKEYS } from '../../approvals/passkeys/enrolment.ts';
import {
  ApprovalId,
  assertionRefused,
  challengeExpired,
  notVerified,
  RequestHash,
  requestChanged,
} from '../decision-answers.ts';
import { Refusal } from '../errors.ts';
import { noLongerPending, REPLAY_WAIT_MS } from '../held-call.ts';
import { changingOwner } from '../owner-change.ts';
import { Assertion, expectReauthenticated, REAUTHENTICATION_ERRORS } from '../reauthenticated.ts';
import { instant, json } from '../reply.ts';
import { route } from '../route.ts';
import { takeLimit } from '../route-steps.ts';
import {
  AuthenticationResponse,
  CreationOptions,
  DeviceName,
  MAX_PASSKEY_BODY_BYTES,
  RegistrationResponse,
  RequestOptions,
} from '../webauthn-json.ts';

/**
 * One limit for the four routes together (specification, Limits). It counts failures only: strangers may share the owner's address behind a proxy.
 */
const LIMIT = { name: 'passkeys', perMinute: 10, per: 'address', counts: 'failures' } as const;

/**
 * A further limit of successful begins, per address and approval, or per address and enrolling owner, so that an owner can decide any number of
 * approvals from a shared address.
 */
const BEGINS = { name: 'passkey-begins', perMinute: 10, per: 'address' } as const;

/**
 * POST /v1/approvals/passkeys/register/begin: the owner has just authenticated, by the specification's session or by a passkey. `finish` checks only
 * the challenge that is issued here.
 */
export const passkeyRegisterBegin = route({
  method: 'POST',
  path: '/v1/approvals/passkeys/register/begin',
  auth: 'owner',
  role: 'approver',
  limit: LIMIT,
  capability: 'passkeys.register.begin',
  summary: 'Options for creating a passkey of this owner.',
  description:
    'An owner begins at most 10 times a minute from one address, having signed in within the last 10 minutes; or with an `assertion` by a passkey that the owner has (purpose `add-passkey`).',
  body: z.object({
    assertion: Assertion,
    device_name: DeviceName.optional().describe(
      'the name that `finish` will get, checked before the device makes a passkey',
    ),
  }),
  bodyOptional: true,
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: { 200: { description: 'PublicKeyCredentialCreationOptions as JSON.', schema: CreationOptions } },
  errors: ['invalid_request', 'conflict', 'rate_limited', ...REAUTHENTICATION_ERRORS],
  handle: async (context) => {
    const { services, who, limits, source, body } = context;
    const { broker } = services;
    const { owner } = who;
    await takeLimit(limits, BEGINS, `${source} ${owner.id}`);
    const subject = { purpose: 'add-passkey', id: UNKNOWN_PERSON } as const;
    await expectReauthenticated(context, 'Adding a passkey', { assertion: body.assertion, subject });
    const options = await beginEnrolment(broker, owner);
    if (!options) throw tooMany();
    return json(200, options);
  },
});

const tooMany = () =>
  new Refusal('conflict', `An owner has at most ${MAX_PASSKEYS} passkeys: remove one that you do not use.`);

/** POST /v1/approvals/passkeys/register/finish */
export const passkeyRegisterFinish = route({
  method: 'POST',
  path: '/v1/approvals/passkeys/register/finish',
  auth: 'owner',
  role: 'approver',
  limit: LIMIT,
  capability: 'passkeys.register.finish',
  summary: 'Enrols the passkey that an authenticator created.',
  body: z.strictObject({ response: RegistrationResponse, device_name: DeviceName }),
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: {
    200: {
      description: 'The passkey is enrolled.',
      schema: z.object({ credential_id: z.string(), device_name: z.string(), verified: z.literal(true) }),
    },
  },
  errors: [
    'invalid_request',
    'verification_failed',
    'passkey_exists',
    'conflict',
    'challenge_expired',
    'rate_limited',
    'audit_unavailable',
  ],
  handle: async (context) => {
    const { services, body } = context;
    const made = { response: body.response, deviceName: body.device_name };
    const enrolment = await enrolPasskey(services, changingOwner(context), made);
    switch (enrolment.kind) {
      case 'enrolled': {
        const { credential_id, device_name } = enrolment.passkey;
        return json(200, { credential_id, device_name, verified: true });
      }
      case 'unverified':
        throw notVerified(enrolment.detail);
      case 'challenge_expired':
        throw challengeExpired();
      case 'exists':
        throw new Refusal('passkey_exists', 'This passkey is enrolled already, or was, and is disabled now.');
      case 'too_many':
        throw tooMany();
    }
  },
});

/** POST /v1/approvals/passkeys/sign/begin: the approval's id is the capability. Reveals nothing of the request. */
export const passkeySignBegin = route({
  method: 'POST',
  path: '/v1/approvals/passkeys/sign/begin',
  auth: 'none',
  limit: LIMIT,
  capability: 'passkeys.sign.begin',
  summary: "Options to approve a held call with a passkey of the agent's owner.",
  description: 'One approval is begun at most 10 times a minute from one address.',
  body: z.strictObject({
    approval_id: ApprovalId,
    request_hash: RequestHash.optional().describe(
      'of the request that was shown: another one is not signed; of a call that was corrected it has to be said',
    ),
  }),
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: { 200: { description: 'PublicKeyCredentialRequestOptions as JSON.', schema: RequestOptions } },
  errors: ['invalid_request', 'not_found', 'request_changed', 'rate_limited'],
  handle: async ({ services: { broker }, body, limits, source }) => {
    const approvalId = body.approval_id.toLowerCase();
    const begun = await beginSigning(broker, approvalId, body.request_hash);
    // The same answer for all these cases, so that an id that somebody found or guessed reveals nothing more.
    if (begun.kind === 'not_found')
      throw new Refusal(
        'not_found',
        'No approval of this id waits for a passkey. Its owner can decide in the console.',
      );
    // Counted only for existing approvals: guessed ids, which count as failures, use no memory here.
    await takeLimit(limits, BEGINS, `${source} ${approvalId}`);
    if (begun.kind === 'changed') throw requestChanged(begun.requestHash);
    return json(200, begun.options);
  },
});

/** POST /v1/approvals/passkeys/sign/finish */
export const passkeySignFinish = route({
  method: 'POST',
  path: '/v1/approvals/passkeys/sign/finish',
  auth: 'none',
  limit: LIMIT,
  capability: 'passkeys.sign.finish',
  summary: 'Approves the held call that the challenge was made for; it is then made at most once.',
  body: z.strictObject({ response: AuthenticationResponse }),
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: {
    200: {
      description: 'Approved; executed_at is null while the platform has not answered.',
      schema: z.object({
        status: z
          .enum(['approved', 'pending'])
          .describe('pending: others have to approve it, too, by a rule that needs several people'),
        approval_id: z.guid(),
        executed_at: z.iso.datetime().nullable(),
      }),
    },
  },
  errors: [
    'invalid_request',
    'verification_failed',
    'counter_regression',
    'not_found',
    'already_decided',
    'approval_expired',
    'challenge_expired',
    'rate_limited',
    'audit_unavailable',
  ],
  handle: async ({ services, body, correlationId }) => {
    const signed = await approveByPasskey(services, body.response, { correlationId });
    switch (signed.kind) {
      case 'not_found':
        throw new Refusal('not_found', 'There is no approval for this challenge.');
      case 'already_decided':
        throw new Refusal('already_decided', 'This call was decided already.');
      case 'expired':
        throw noLongerPending();
      case 'decided': {
        const { approval } = await afterReplay(services, signed, REPLAY_WAIT_MS);
        const { id, executed_at } = approval;
        return json(200, { status: 'approved', approval_id: id, executed_at: instant(executed_at) });
      }
      case 'approved_in_part':
        return json(200, { status: 'pending', approval_id: signed.approval.id, executed_at: null });
      default:
        throw assertionRefused(signed, 'Decide in the console');
    }
  },
});
