/** Converts the outcome of a git request that was not passed on into a line that git shows (specification, Governed git). */
import { reachOf } from '../../audit/effect.ts';
import { assertNever, type GitOutcome, type NotPassedOn, type OutcomeOf } from '../../audit/outcome.ts';
import type { GitRef } from '../../policy/facts.ts';
import { line } from '../line.ts';
import { afterGitRefusal, type Caller } from '../next-step.ts';
import { isGrantable } from '../outcome-reply.ts';
import type { Reply } from '../reply.ts';
import { sentence } from '../unready.ts';

/** Returns the line for an outcome whose answer was not begun. `repository`: `owner/repo`. `caller`: decides which next step is described. */
export function gitOutcomeReply(outcome: GitOutcome, repository: string, caller: Caller): Reply {
  const { auditId } = outcome.call;
  const answer = (status: number, code: string, what: string, headers: Record<string, string> = {}) =>
    line(status, code, what, { 'X-Svc-Audit-Id': auditId, ...headers });
  switch (outcome.kind) {
    case 'denied':
      return denied(outcome, { repository, caller }, answer);
    case 'inactive':
      return answer(403, 'agent_inactive', `${repository}: ${sentence(outcome.detail)}`);
    case 'cannot_hold':
      return answer(403, 'approval_required_unsupported_for_git', `${repository}: ${CANNOT_HOLD}${pushed(outcome)}`);
    case 'invalid':
      return outcome.code === 'git_request_too_large'
        ? answer(413, outcome.code, `${repository}: ${outcome.detail}`)
        : answer(400, 'invalid_request', `${repository}: ${sentence(outcome.detail)}`);
    // Usually the client has left; it can read this only if just its sending direction is closed.
    case 'request_cut':
      return answer(400, 'invalid_request', `${repository}: ${sentence(outcome.detail)}`);
    case 'not_connected':
      return answer(412, 'platform_not_connected', `${repository}: ${NOT_CONNECTED}`);
    case 'consent_required':
      return answer(412, 'consent_required', `${repository}: ${CONSENT[outcome.reason]}`);
    case 'needs_consent':
      return answer(412, 'needs_consent', `${repository}: ${NEEDS_CONSENT}`);
    case 'reauth_needed':
      return answer(502, 'upstream_auth_failed', `${repository}: ${whyNoCredential(outcome)}`);
    case 'credential_unreadable':
      return answer(503, outcome.kind, `${repository}: ${UNREADABLE}`);
    case 'too_many_calls':
      return answer(429, outcome.kind, `${repository}: ${TOO_MANY}`, { 'Retry-After': '1' });
    case 'unreachable':
      return answer(502, 'upstream_unreachable', `${repository}: ${sentence(outcome.detail)}${mayBePushed(outcome)}`);
    case 'not_passed_on': {
      const { cause, upstreamStatus } = outcome;
      const ofCredential = upstreamStatus === 403 ? FORBIDDEN : NOT_PASSED_ON.auth_refused;
      const ofRefusal = outcome.call.caller ? REFUSED_OF_PERSON : ofCredential;
      const [status, code, what] = cause === 'auth_refused' ? ofRefusal : NOT_PASSED_ON[cause];
      return answer(
        status,
        code,
        `${repository}${what}${cause === 'unexpected' ? ` It answered ${upstreamStatus}.` : ''}${mayBePushed(outcome)}`,
      );
    }
    case 'streamed':
      return outcome.ended === 'credential_found'
        ? answer(502, 'upstream_response_blocked', `${repository}: ${BLOCKED}${mayBePushed(outcome)}`)
        : answer(502, 'upstream_unreachable', `${repository}: ${BROKE_OFF}${mayBePushed(outcome) || ' Try again.'}`);
    default:
      return assertNever(outcome);
  }
}

function denied(
  { verdict, call }: OutcomeOf<'denied'>,
  { repository, caller }: { repository: string; caller: Caller },
  answer: (status: number, code: string, what: string, headers?: Record<string, string>) => Reply,
): Reply {
  const { halt, reason, detail } = verdict;
  const wait = halt?.retry_after_seconds ?? verdict.retryAfterSeconds;
  const headers = wait == null ? {} : { 'Retry-After': String(wait) };
  // The specification's wording, for repositories only: the same reason is used for refs, which are named in full, and for push options.
  if (reason === 'repo_not_allowed' && !verdict.violating?.some((name) => /^(?:refs\/|-o )/.test(name)))
    return answer(403, reason, `${repository} is not in the agent's allowed repositories`);
  const { scope } = call.asked;
  // A git user has named no scope, so the sentence names it.
  const why =
    reason === 'scope_not_granted'
      ? `this needs the scope ${scope}, which the grant does not include.`
      : sentence(detail);
  const next = halt
    ? sentence(halt.instructions)
    : isGrantable(verdict)
      ? afterGitRefusal(reason, caller, scope)
      : undefined;
  const words = [why, next].filter((one) => one !== undefined).join(' ');
  return answer(403, halt ? 'agent_halted' : reason, `${repository}: ${words}`, headers);
}

function whyNoCredential({ cause, detail, call }: OutcomeOf<'reauth_needed'>): string {
  if (call.caller) return TOKEN_OVER;
  return cause === 'no_token' && detail !== undefined ? sentence(detail) : REFUSED;
}

const CANNOT_HOLD =
  'this needs the approval of a person, and git cannot wait for one. Ask an owner for a policy that allows it, as for the refs of this agent alone.';
const NOT_CONNECTED = 'no code host is connected for the organisation. An owner has to connect it.';
const CONSENT: Record<OutcomeOf<'consent_required'>['reason'], string> = {
  no_caller:
    'this code host has one token per person. Name the person in X-Svc-Caller (git config http.extraHeader), with a valid assertion.',
  asserted_not_allowed:
    'this code host has one token per person, and does not trust this source to name the person. Send an assertion in X-Svc-Caller.',
  not_consented:
    'this person has no token here that can be used. Begin their consent with POST /v1/consent/caller/start, or have an owner confirm it.',
};
const NEEDS_CONSENT = 'the connection was granted less than this needs. An owner has to connect it again.';
const REFUSED =
  'the code host refused the stored credential, or does not let it do this. An owner has to connect it again.';
const UNREADABLE = 'the stored credential cannot be opened. An owner has to connect it again.';
const TOKEN_OVER =
  'the token that this person gave has expired, or the code host refuses it. They have to consent again: begin that with POST /v1/consent/caller/start.';
const TOO_MANY =
  'too many calls, or too many large requests, of this agent or of all are under way. Nothing was sent: try again.';
const BROKE_OFF = 'the answer of the code host broke off.';
const BLOCKED = 'the answer of the code host held the credential, so it is withheld.';

const NOT_PASSED_ON: Record<NotPassedOn, [status: number, code: string, what: string]> = {
  auth_refused: [502, 'upstream_auth_failed', `: ${REFUSED}`],
  not_found: [404, 'not_found', ' does not exist at the code host, or is not visible with the stored credential.'],
  redirected: [
    502,
    'upstream_unreachable',
    ': the code host redirects elsewhere, which is not followed. If the repository was renamed, use its new name.',
  ],
  unexpected: [502, 'upstream_unreachable', ': the response of the code host is not a git response.'],
};

/** A credential that the code host accepts: connecting it again would not help. */
const FORBIDDEN: (typeof NOT_PASSED_ON)[NotPassedOn] = [
  502,
  'upstream_auth_failed',
  ': the code host does not let the stored credential do this (403). It may lack the permission, or the repository is archived. Ask an owner.',
];

const REFUSED_OF_PERSON: (typeof NOT_PASSED_ON)[NotPassedOn] = [
  502,
  'upstream_auth_failed',
  ': the code host does not let this person do this, or refuses the token that they gave.',
];

const mayBePushed = (outcome: OutcomeOf<'unreachable' | 'streamed' | 'not_passed_on'>): string =>
  reachOf(outcome) === 'unknown' && (outcome.call.git?.refs ?? []).length > 0
    ? ' The push may have been made: fetch before you repeat it.'
    : '';

const NAMED = 3;

/** Lists the refs of a push, so that a client that pushes many sees what the refusal is about. */
function pushed({ call }: OutcomeOf<'cannot_hold'>): string {
  const refs: readonly GitRef[] = call.git?.refs ?? [];
  if (refs.length === 0) return '';
  const names = refs.slice(0, NAMED).map(({ name, action }) => `${action} ${name}`);
  return ` It would ${names.join(', ')}${refs.length > NAMED ? ` and ${refs.length - NAMED} more` : ''}.`;
}
