/** Builds `execution_error` of an approval: why the replay failed, or that its outcome is unknown. */
import type { AuditRow } from '../store/audit.ts';
import { platformEffectOf } from './effect.ts';
import { assertNever, BLOCKED_DETAILS, type OutcomeOf, type ReplayFailure } from './outcome.ts';

/** Text that recovery stores for a replay whose process died after its intent was stored. */
export const STOPPED_IN_FLIGHT =
  'outcome unknown: the broker stopped while the call was in flight; check the platform before you ask again.';

export type ExecutionError = {
  /** Whether it is unknown if the platform acted. */
  unknown: boolean;
  /** Whether the platform acted, but its response cannot be returned. */
  made: boolean;
  /** Begins with the reason code of the replay's row, or with `outcome unknown`. */
  text: string;
};

/** Derives the error from the final row of a replay and its outcome; the outcome is undefined when the replay broke off. */
export function executionError(row: Readonly<AuditRow>, outcome: ReplayFailure | undefined): ExecutionError {
  const because = (detail: string, known = { unknown: false, made: false }): ExecutionError => ({
    ...known,
    text: `${row.reason}: ${/[.!?]$/.test(detail) ? detail : `${detail}.`}`,
  });
  switch (outcome?.kind) {
    case undefined:
      return row.reason === 'audit_unavailable'
        ? because('The store did not answer, so nothing was sent')
        : { unknown: true, made: false, text: STOPPED_IN_FLIGHT };
    case 'unreachable':
      return platformEffectOf(outcome) === 'unknown'
        ? {
            unknown: true,
            made: false,
            text: `outcome unknown: ${outcome.detail} The call may have been made; check the platform before you ask again.`,
          }
        : because(outcome.detail);
    case 'response_blocked':
      return because(`The call was made. ${BLOCKED_DETAILS[outcome.cause]}`, { unknown: false, made: true });
    case 'reauth_needed':
      if (outcome.call.caller !== undefined)
        return because(
          'The token of the person for whom it was held has expired, or was refused; they have to consent again',
        );
      if (outcome.cause === 'no_token') return because(outcome.detail ?? 'The platform issued no token');
      return outcome.cause === 'malformed'
        ? because('The stored credential cannot be sent, so nothing was; an owner has to replace it')
        : because('The platform refused the stored credential; an owner has to connect it again');
    case 'credential_unreadable':
      return because('The stored credential cannot be opened, so nothing was sent; an owner has to connect it again');
    case 'not_connected':
      return because('No connection of the platform can be used now, so nothing was sent');
    case 'consent_required':
      if (outcome.awaits === 'owner')
        return because(
          'An owner has to confirm the latest token of the person for whom it was held, and their earlier token can no longer be used',
        );
      return outcome.refused
        ? because('The platform refused the call, because the person has consented to less than it needs')
        : because(`${outcome.detail?.replace(/\.$/, '') ?? NO_TOKEN[outcome.reason]}, so nothing was sent`);
    case 'needs_consent':
      return outcome.refused
        ? because('The platform refused the call, because the connection was granted less than it needs')
        : because('The connection was granted less than the scope needs, so nothing was sent');
    case 'denied':
      return because(`${outcome.verdict.detail}, so nothing was sent`);
    case 'inactive':
    case 'invalid':
    case 'not_as_approved':
    case 'too_many_calls':
      return because(row.detail ?? 'Nothing was sent');
    default:
      return assertNever(outcome);
  }
}

/** Why a held call has no token of a person for its replay. */
const NO_TOKEN: Record<OutcomeOf<'consent_required'>['reason'], string> = {
  no_caller: 'The platform now has one token per person, and the call was held without naming a person',
  asserted_not_allowed: 'The platform no longer trusts this source to say who the person is',
  not_consented: 'The person for whom it was held no longer has a usable token',
};
