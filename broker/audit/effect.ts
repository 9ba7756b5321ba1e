/** What a call did at its platform. */
import { assertNever, type Outcome } from './outcome.ts';

/** Whether the platform may have received the call, so that storing its row is retried for long. */
export function mayBeSent(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'answered':
    case 'response_blocked':
    case 'streamed':
    case 'not_passed_on':
      return true;
    case 'unreachable':
      return outcome.sent;
    case 'reauth_needed':
      return outcome.cause === 'refused';
    case 'needs_consent':
    case 'consent_required':
      return outcome.refused !== undefined;
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
      return false;
    default:
      return assertNever(outcome);
  }
}
