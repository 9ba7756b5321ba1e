/** Operations that need more than a session: the owner has to authenticate again. */
import type { z } from 'zod';
import { assertOnce } from '../approvals/passkeys/once.ts';
import { RECENT_SIGN_IN_SECONDS, signedInRecently } from '../auth/recent-sign-in.ts';
import { assertionRefused } from './decision-answers.ts';
import { type ErrorCode, Refusal } from './errors.ts';
import type { Context } from './route.ts';
import { AuthenticationResponse } from './webauthn-json.ts';

/** Error codes of `expectReauthenticated`. */
export const REAUTHENTICATION_ERRORS = [
  'verification_failed',
  'counter_regression',
  'reauthentication_required',
  'challenge_expired',
  'audit_unavailable',
] as const satisfies readonly ErrorCode[];

/** The member of a body that holds a passkey assertion, in place of a recent sign-in. */
export const Assertion = AuthenticationResponse.optional().describe(
  'by a passkey of the owner, to options of POST /owner/passkeys/assert/begin, when the sign-in is older than 10 minutes',
);

type ByPasskey = {
  assertion: z.output<typeof Assertion>;
  subject: Parameters<typeof assertOnce>[2]['subject'];
};

/**
 * Requires a sign-in within the last RECENT_SIGN_IN_SECONDS or, where `byPasskey` is given, a passkey assertion of the same owner for exactly this
 * operation, which is consumed. `doing`: the operation, as the subject of a sentence.
 *
 * @throws Refusal (REAUTHENTICATION_ERRORS)
 */
export async function expectReauthenticated(
  { services, who, correlationId }: Pick<Context<'owner'>, 'services' | 'who' | 'correlationId'>,
  doing: string,
  byPasskey?: ByPasskey,
): Promise<void> {
  if (byPasskey?.assertion) {
    const { assertion, subject } = byPasskey;
    const shown = await assertOnce(services, assertion, { subject, session: who.owner }, { correlationId });
    if (shown.kind !== 'asserted') throw assertionRefused(shown, 'Sign in again, remove it');
    return;
  }
  if (signedInRecently(who, services.broker.clock())) return;
  const minutes = RECENT_SIGN_IN_SECONDS / 60;
  throw new Refusal(
    'reauthentication_required',
    `${doing} takes a sign-in within the last ${minutes} minutes${byPasskey ? ', or a passkey that you have' : ''}. Sign in again${byPasskey ? ', or confirm it with that passkey' : ''}.`,
    { extra: { max_age_seconds: RECENT_SIGN_IN_SECONDS } },
  );
}
