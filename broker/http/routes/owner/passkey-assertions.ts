/** Signs owners in by passkey, and decides held calls by passkey without a session. */
import { z } from 'zod';
import { type AssertionAsk, beginAssertion, NOT_VERIFIED } from '../../../approvals/passkeys/assertion.ts';
import { UNKNOWN_PERSON } from '../../../approvals/passkeys/challenge.ts';
import { decideByPasskey } from '../../../approvals/passkeys/decision.ts';
import { assertOnce } from '../../../approvals/passkeys/once.ts';
import { hashOfStanding } from '../../../approvals/standing-request.ts';
import { foreignOrigin } from '../../../auth/session-cookie.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import type { Services } from '../../../services.ts';
import {
  ApprovalId,
  afterDeciding,
  assertionRefused,
  decidedAlready,
  Note,
  notVerified,
  RequestHash,
  requestChanged,
  unknownHeldCall,
} from '../../decision-answers.ts';
import { Refusal } from '../../errors.ts';
import { noLongerPending } from '../../held-call.ts';
import { HeldCallDecided } from '../../held-call-schema.ts';
import { json } from '../../reply.ts';
import { type Context, route } from '../../route.ts';
import { SignedInSession, signedIn } from '../../signed-in.ts';
import { askedStanding, StandingAsked } from '../../standing.ts';
import { AuthenticationResponse, MAX_PASSKEY_BODY_BYTES, RequestOptions } from '../../webauthn-json.ts';

/** Counts failures of both routes together: guessing has to be slow, while others at the same address can still decide. */
const LIMIT = { name: 'passkey-assertions', perMinute: 10, per: 'address', counts: 'failures' } as const;

const SignIn = z.literal('sign-in');
const Decide = z.enum(['approve', 'deny']);
/** An approval together with a standing approval. */
const Standing = z.literal('standing');

/** Refuses pages of other sites, which must neither decide nor sign their visitor in as somebody else. */
function expectOwnPage({ request, services: { broker } }: Pick<Context, 'request' | 'services'>): void {
  const foreign = foreignOrigin(request, broker.baseUrl);
  if (foreign !== undefined) throw new Refusal('forbidden', foreign);
}

function expectLocalSignIn({ broker, provider }: Services): void {
  if (provider)
    throw new Refusal(
      'forbidden',
      `Owners sign in at ${provider.host} here, not by passkey. Go to ${broker.baseUrl}/console/sign-in.`,
    );
}

const Begin = z.discriminatedUnion('purpose', [
  z.strictObject({ purpose: SignIn }),
  z.strictObject({ purpose: z.literal('add-passkey') }),
  z.strictObject({ purpose: z.literal('remove-passkey'), passkey_id: z.guid() }),
  z.strictObject({
    purpose: Decide,
    approval_id: ApprovalId,
    request_hash: RequestHash.describe('of the request that was shown'),
    note: Note.optional(),
  }),
  z.strictObject({
    purpose: Standing,
    approval_id: ApprovalId,
    request_hash: RequestHash.describe('of the request that was shown'),
    standing: StandingAsked,
    note: Note.optional(),
  }),
]);

function askOf(body: z.output<typeof Begin>): AssertionAsk {
  switch (body.purpose) {
    case 'sign-in':
    case 'add-passkey':
      return body;
    case 'remove-passkey':
      return { purpose: body.purpose, passkeyId: storedUuid(body.passkey_id) };
    default:
      return {
        ...(body.purpose === 'standing'
          ? { purpose: body.purpose, termsHash: hashOfStanding(askedStanding(body.standing)) }
          : { purpose: body.purpose }),
        approvalId: body.approval_id.toLowerCase(),
        requestHash: body.request_hash,
        note: body.note,
      };
  }
}

/** POST /owner/passkeys/assert/begin */
export const beginPasskeyAssertion = route({
  method: 'POST',
  path: '/owner/passkeys/assert/begin',
  auth: 'none',
  limit: LIMIT,
  capability: 'owner.passkeys.assert.begin',
  summary:
    'Options to sign in, to add or remove a passkey, or to approve or deny one held call, with a discoverable passkey; or to approve it along with calls like it.',
  description:
    'No credentials are listed, and the authenticator has to verify its user. The challenge is good for 5 minutes and for this purpose, request and note only.',
  body: Begin,
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: { 200: { description: 'PublicKeyCredentialRequestOptions as JSON.', schema: RequestOptions } },
  errors: [
    'invalid_request',
    'forbidden',
    'not_found',
    'already_decided',
    'request_changed',
    'approval_expired',
    'rate_limited',
  ],
  handle: async ({ services, body }) => {
    if (body.purpose === 'sign-in') expectLocalSignIn(services);
    const begun = await beginAssertion(services.broker, askOf(body));
    switch (begun.kind) {
      case 'begun':
        return json(200, begun.options);
      case 'not_found':
        throw unknownHeldCall();
      case 'already_decided':
        throw decidedAlready(begun.status);
      case 'changed':
        throw requestChanged(begun.requestHash);
      case 'expired':
        throw noLongerPending();
    }
  },
});

/** POST /owner/passkeys/assert/finish */
export const finishPasskeyAssertion = route({
  method: 'POST',
  path: '/owner/passkeys/assert/finish',
  auth: 'none',
  limit: LIMIT,
  capability: 'owner.passkeys.assert.finish',
  summary: 'Signs in by passkey, or makes the decision that the challenge was issued for.',
  description:
    'By a passkey of any approver or admin of the organisation, or, if `passkey_deciders` is so set, of the owner of the agent. Where owners sign in at an identity provider, a passkey signs nobody in.',
  body: z.discriminatedUnion('purpose', [
    z.strictObject({ purpose: SignIn, response: AuthenticationResponse }),
    z.strictObject({
      purpose: Decide,
      response: AuthenticationResponse,
      note: Note.optional().describe('as it was at the begin'),
    }),
    z.strictObject({
      purpose: Standing,
      response: AuthenticationResponse,
      standing: StandingAsked.describe('as it was at the begin'),
      note: Note.optional().describe('as it was at the begin'),
    }),
  ]),
  maxBodyBytes: MAX_PASSKEY_BODY_BYTES,
  answers: {
    200: {
      description: 'Who signed in, with the session as a cookie; or the held call as it is now.',
      schema: z.union([SignedInSession, HeldCallDecided]),
    },
  },
  errors: [
    'invalid_request',
    'verification_failed',
    'counter_regression',
    'forbidden',
    'not_found',
    'already_decided',
    'approval_expired',
    'challenge_expired',
    'rate_limited',
    'audit_unavailable',
  ],
  handle: async (context) => {
    const { services, body, correlationId } = context;
    expectOwnPage(context);
    if (body.purpose !== 'sign-in') {
      const { purpose, note, response } = body;
      const standing = 'standing' in body ? askedStanding(body.standing) : undefined;
      const by = {
        purpose: purpose === 'standing' ? ('approve' as const) : purpose,
        note,
        standing,
        elsewhere: services.provider !== undefined,
      };
      return json(200, await afterDeciding(services, await decideByPasskey(services, response, by, { correlationId })));
    }
    expectLocalSignIn(services);
    const subject = { purpose: 'sign-in', id: UNKNOWN_PERSON } as const;
    const who = await assertOnce(services, body.response, { subject }, { correlationId });
    if (who.kind !== 'asserted') throw assertionRefused(who, 'Sign in with a link, remove it');
    return await signedIn(context, who.owner, 'passkey', async (tx) => {
      if (!(await who.isActive(tx))) throw notVerified(NOT_VERIFIED);
    });
  },
});
