/** Shared by decisions on held calls with a session and with a passkey: schemas and refusals. */
import { z } from 'zod';
import { afterReplay, type Decided } from '../approvals/decide.ts';
import type { DecidedByPasskey } from '../approvals/passkeys/decision.ts';
import type { AssertionRefused } from '../approvals/passkeys/verify.ts';
import { platformMessage } from '../approvals/platform-message.ts';
import type { Services } from '../services.ts';
import { text } from '../wire/action.ts';
import { Refusal } from './errors.ts';
import { noLongerPending, REPLAY_WAIT_MS, stated } from './held-call.ts';
import { standingRefused } from './standing.ts';

export const ApprovalId = z.guid('must be the id of an approval, a UUID');
export const Note = text(1000).min(1).describe('for the agent to read, and on record');
export const RequestHash = z.string().regex(/^[0-9a-f]{64}$/, 'must be the request_hash of the held call');

export const challengeExpired = () =>
  new Refusal(
    'challenge_expired',
    'The challenge is older than 5 minutes, was used, or the broker was restarted. Begin again.',
  );

export const notVerified = (detail: string) => new Refusal('verification_failed', detail);

/** Converts a refused assertion. `instead`: what the owner can do instead, for a disabled passkey. */
export function assertionRefused(refused: AssertionRefused, instead: string): Refusal {
  switch (refused.kind) {
    case 'challenge_expired':
      return challengeExpired();
    case 'unverified':
      return notVerified(refused.detail);
    case 'counter_regression':
      return new Refusal(
        'counter_regression',
        `The signature counter of this passkey did not increase: it may have been cloned, so it is disabled. ${instead}, and enrol another one.`,
      );
  }
}

export const unknownHeldCall = () => new Refusal('not_found', 'The organisation has no such held call.');

export const requestChanged = (request_hash: string) =>
  new Refusal('request_changed', 'This is not the request that you were shown. Load it and look again.', {
    extra: { request_hash },
  });

/** `by`: address of the owner who decided first, for readers who may see it; null: that owner was removed. */
export const decidedAlready = (status: string, by?: string | null) =>
  new Refusal('already_decided', `This call was ${status} already${by ? ` by ${by}` : ''}.`, {
    extra: { status, ...(by !== undefined && { decided_by_email: by }) },
  });

type AfterDeciding = Awaited<ReturnType<typeof stated>> & {
  platform_message: string | null;
  standing_approval: string | null;
  waiting: Awaited<ReturnType<typeof afterReplay>>['waiting'];
};

/** Returns the held call after the platform has answered, or after REPLAY_WAIT_MS, or as it was decided. Throws Refusal when it was not decided. */
export async function afterDeciding(services: Services, decided: Decided | DecidedByPasskey): Promise<AfterDeciding> {
  const { broker } = services;
  switch (decided.kind) {
    case 'decided':
    case 'approved_in_part': {
      const replayed = decided.kind === 'decided' ? decided.replayed : Promise.resolve();
      const { approval, waiting } = await afterReplay(services, { ...decided, replayed }, REPLAY_WAIT_MS);
      return {
        ...(await stated(broker, approval)),
        platform_message: platformMessage(broker, approval),
        standing_approval: decided.kind === 'decided' ? (decided.standing ?? null) : null,
        waiting,
      };
    }
    case 'not_found':
      throw unknownHeldCall();
    case 'already_decided':
      throw decidedAlready(decided.status, decided.by);
    case 'expired':
      throw noLongerPending();
    case 'changed':
      throw requestChanged(decided.requestHash);
    case 'forbidden':
      throw new Refusal('forbidden', FORBIDDEN[decided.why]);
    case 'no_standing':
    case 'needs_passkey':
      throw standingRefused(decided);
    default:
      throw assertionRefused(decided, 'Sign in to decide, remove it');
  }
}

const FORBIDDEN = {
  role: 'Your role is viewer: an approver or an admin decides.',
  not_agents_owner:
    "Without a session only the agent's owner decides by passkey in this organisation (passkey_deciders). Sign in first.",
  sign_in_again:
    'Your role comes from groups of the identity provider, which were last read more than 30 days ago. Sign in to the console through the identity provider, then decide.',
} as const;
