/** Next steps for the model after each refusal, because a refusal without one invites pointless retries. */
import type { CallOutcome, DenyReason, NotReadyCode } from '../client/action.ts';
import type { BrokerError } from '../client/broker-error.ts';

type Denied = Extract<CallOutcome, { kind: 'denied' }>;
export type About = { platform: string; scope?: string | undefined };

const TELL = 'Tell the person you work for';

/** After a refusal by the rules. */
export function afterDenial(
  { reason, requestable, notGrantable, violating, limit, retryAfterSeconds, platform }: Denied,
  about: About,
): string {
  const ask = `Call request_access with platform "${about.platform}"${about.scope ? `, scope "${about.scope}"` : ''} and your reason, unless another scope that you hold fits (list_permissions).`;
  if (requestable) return ask;
  if (notGrantable)
    return `Call again with the scope that the answer names, if any, or with a platform and scope of list_permissions; call request_access with that scope if you do not hold it. If nothing fits, ${TELL.toLowerCase()}: this platform and scope cannot be asked for.`;
  if (limit)
    return `Do not send it again before ${limit.resets_at}, when the next ${limit.per} begins, and do not split it or try another way. ${TELL} that the limit is reached.`;
  const words: Partial<Record<DenyReason, string>> = {
    endpoint_scope_mismatch:
      'If the answer names a scope that covers this method and endpoint, call again with it, or call request_access for it if you do not hold it. Otherwise no scope helps: do not ask for one. If an owner has to accept the tool, tell the person you work for, and continue without it.',
    circuit_breaker_open: `Wait ${retryAfterSeconds ?? 60} seconds, then try one call${platform === undefined ? '' : ` on ${platform}. Other platforms can be used meanwhile`}.`,
    recipient_not_allowed: `Leave out ${named(violating, 'the recipients that are not allowed')}, or tell the person that an owner has to allow them. Do not look for another way to reach them.`,
    repo_not_allowed:
      violating.length > 0
        ? `Do not go on with ${violating.join(', ')}: an owner has to allow it first. ${TELL}.`
        : 'Call another endpoint, of an allowed repository, that does not reach beyond it: this one cannot be limited to repositories, and no approval changes that.',
    platform_suspended: `${TELL} that the platform is switched off. Do not try again.`,
    denied_by_guardrail: `Do not try another way: a rule of the organisation forbids it. ${TELL} what you wanted to do.`,
    denied_by_policy: `Do not try another way. ${TELL} what you wanted to do; an owner can change the policy.`,
    no_policy_assigned: ask,
  };
  return words[reason] ?? `${TELL}.`;
}

const named = (violating: readonly string[], otherwise: string): string =>
  violating.length === 0 ? otherwise : violating.join(', ');

/** While the agent is halted. */
export function afterHalt({ halt }: Extract<CallOutcome, { kind: 'halted' }>): string {
  return halt.recoverable_by === 'time'
    ? `Stop calling for ${halt.retry_after_seconds ?? 60} seconds. ${halt.instructions}`
    : `Stop now: make no further calls, also not with other tools of this server. ${TELL} that this agent is ${halt.state}, and what you were doing. ${halt.instructions}`;
}

/** When something has to be set up first. */
export function afterNotReady(outcome: Extract<CallOutcome, { kind: 'not_ready' }>, { platform }: About): string {
  const link = outcome.consentUrl === undefined ? '' : ` They can do it at ${outcome.consentUrl}.`;
  const words: Record<NotReadyCode, string> = {
    agent_inactive: `${TELL} that an owner has to finish setting this agent up.`,
    platform_reauth_needed: `${TELL} that an owner has to connect ${platform} again. Repeating the call does not help.`,
    needs_consent: outcome.requestToken
      ? `The owners have been asked. ${TELL}, and try again once the connection of ${platform} was granted more.`
      : `${TELL} that an owner has to connect ${platform} again and grant it more. Repeating the call before that does not help.`,
    platform_not_connected: `${TELL} that an owner has to connect ${platform}.`,
    consent_required: afterNoToken(outcome, platform),
  };
  return `${words[outcome.code]}${link}`;
}

/** Where the platform holds one token per person. */
function afterNoToken({ reason }: Extract<CallOutcome, { kind: 'not_ready' }>, platform: string): string {
  if (reason === 'no_caller')
    return `Call again with caller, the person for whom you act: source and id, or an assertion that is good. If you do not know them, ask the person you work for.`;
  if (reason === 'asserted_not_allowed')
    return `Call again with an assertion (a JWT about the person) as the caller. If you have none: ${TELL.toLowerCase()}.`;
  return `${TELL} what has to be done on ${platform} first. Then make the identical call again.`;
}

/** Appended when an identical call was begun before: this attempt was refused, but the earlier one may have been made. */
export const withEarlier = (words: string): string =>
  `${words} An identical call was submitted before, and may have been made: when this has ended, call again with exactly the same arguments to learn its outcome. It is not made twice.`;

const NOTHING_DONE = 'Nothing was done.';

/** After an error; `written`: the call may have an effect. `otherwise`: what is said when this attempt had none. */
export function afterError(error: BrokerError, written: boolean, otherwise = NOTHING_DONE): string {
  const { code, retryAfterSeconds, clockAheadSeconds } = error;
  if (code === 'upstream_response_blocked' && !written)
    return `Do not repeat it: its response would be withheld again. ${TELL} what you wanted to read; if a rule masks it, an owner can change the rule.`;
  switch (code) {
    case 'unreachable':
    case 'unexpected_answer':
      return error.mayHaveActed && written
        ? 'It is unknown whether the call was made. Call again with exactly the same arguments: that is safe, because it is not made twice.'
        : `${otherwise} Try again in a minute; if it fails again, ${TELL.toLowerCase()} that the broker does not answer, and to run: npx agent-broker doctor`;
    case 'no_profile':
      return `${TELL}: they have to correct this. There is nothing that you can do, and no restart is needed afterwards.`;
    case 'token_expired':
    case 'invalid_token':
    case 'invalid_signature':
    case 'missing_token':
      return clockAheadSeconds !== undefined && Math.abs(clockAheadSeconds) > 25
        ? `${TELL} that the clock of this machine is ${Math.abs(clockAheadSeconds)} seconds ${clockAheadSeconds > 0 ? 'ahead of' : 'behind'} the broker’s: it has to be set from the network (NTP).`
        : `Make no further calls. ${TELL} that the broker does not know this agent by this key, and to run: npx agent-broker doctor`;
    case 'invalid_request':
    case 'invalid_endpoint':
    case 'invalid_headers':
      return 'Correct what the answer names, then call again. The same call gets the same answer.';
    case 'payload_too_large':
      return 'Send less in one call.';
    case 'rate_limited':
      return `Wait ${retryAfterSeconds ?? 60} seconds, then call again.`;
    case 'too_many_pending_approvals':
      return `${TELL} that too many calls wait for a decision. Do not submit more until some are decided.`;
    case 'idempotency_in_progress':
      return `An identical call is in progress. Call again with exactly the same arguments in ${retryAfterSeconds ?? 2} seconds: that is safe, because it is not made twice, and you get its answer.`;
    default:
      return error.mayHaveActed && written
        ? 'The call may have been made: check the platform with read_platform before you repeat it.'
        : `${otherwise} Try again; if it fails again, ${TELL.toLowerCase()}.`;
  }
}
