/** Derives what a call did at its platform. Answers, audit rows and stored responses all follow this one derivation. */
import { assertNever, type Outcome } from './outcome.ts';

/**
 * Returns how far a call came, whatever its method. `refused`: sent, and the platform reports that it did not act. `unknown`: sent (or
 * it was a push whose answer is incomplete), and no answer says whether the platform acted. `made`: the platform answered.
 */
export function reachOf(outcome: Outcome): 'not_sent' | 'refused' | 'unknown' | 'made' {
  switch (outcome.kind) {
    case 'answered':
    case 'response_blocked':
      return 'made';
    case 'streamed':
      return outcome.ended !== 'complete' && isPush(outcome) ? 'unknown' : 'made';
    case 'not_passed_on':
      return outcome.cause === 'unexpected' && isPush(outcome) ? 'unknown' : 'refused';
    case 'unreachable':
      return outcome.sent ? 'unknown' : 'not_sent';
    case 'reauth_needed':
      return outcome.cause === 'refused' ? 'refused' : 'not_sent';
    case 'needs_consent':
    case 'consent_required':
      return outcome.refused ? 'refused' : 'not_sent';
    case 'held':
    case 'denied':
    case 'invalid':
    case 'inactive':
    case 'not_connected':
    case 'credential_unreadable':
    case 'too_many_pending':
    case 'too_many_calls':
    case 'request_cut':
    case 'cannot_hold':
    case 'not_as_approved':
      return 'not_sent';
    default:
      return assertNever(outcome);
  }
}

const isPush = ({ call }: Outcome): boolean => call.git !== undefined && call.git.refs.length > 0;

/** Whether the platform may have received the call; storing its row is then retried for longer. */
export const mayBeSent = (outcome: Outcome): boolean => reachOf(outcome) !== 'not_sent';

/** Returns what a call changed at its platform; `none` for reads, too. `mayHaveActed` derives the same from the stored row. */
export function platformEffectOf(outcome: Outcome): 'none' | 'unknown' | 'made' {
  const reach = reachOf(outcome);
  return outcome.call.asked.method === 'GET' || reach === 'not_sent' || reach === 'refused' ? 'none' : reach;
}
