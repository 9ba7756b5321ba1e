// Labels and sentences for audit rows.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
/** @typedef {{ kind: string, words: string }} Badge */
import { describeTest } from '../connections/connection-labels.js';
import { isSuccess } from '../request-view/answer.js';
import { visibleLine } from '../visible.js';
import { EVENT_TEXTS, readable } from './event-text.js';

/**
 * Results of a call. "Refused" when the agent is not allowed to make it; "denied" only when a person decided so.
 *
 * @type {Record<NonNullable<AuditRow['result']>, Badge>}
 */
export const RESULTS = {
  allowed: { kind: 'good', words: 'Allowed' },
  held: { kind: 'wait', words: 'Held' },
  denied: { kind: 'bad', words: 'Refused' },
  blocked: { kind: 'bad', words: 'Blocked' },
  errored: { kind: 'bad', words: 'Failed' },
};

const UNDER_WAY = { kind: 'wait', words: 'Under way' };
/** @type {Partial<Record<string, Badge>>} */
const EVENTS = {
  approval_approved: { kind: 'good', words: 'Approved' },
  approval_denied: { kind: 'bad', words: 'Denied' },
  approval_given: { kind: 'wait', words: 'Approved in part' },
  approval_corrected: { kind: 'wait', words: 'Corrected' },
  access_request_approved: { kind: 'good', words: 'Granted' },
  access_request_denied: { kind: 'bad', words: 'Denied' },
  registration_approved: { kind: 'good', words: 'Approved' },
  registration_rejected: { kind: 'bad', words: 'Rejected' },
  mcp_client_allowed: { kind: 'good', words: 'Connected' },
  mcp_client_revoked: { kind: 'bad', words: 'Access revoked' },
  outcome_unknown: { kind: 'wait', words: 'Unknown' },
  late_outcome: { kind: 'wait', words: 'Late' },
  breaker_opened: { kind: 'bad', words: 'Paused' },
  breaker_closed: { kind: 'good', words: 'Resumed' },
  mcp_tools_changed: { kind: 'wait', words: 'Held back' },
  mcp_tool_accepted: { kind: 'good', words: 'Accepted' },
};

/**
 * Returns a row's result as a badge. An allowed call is a success only if the platform accepted it and the response arrived complete.
 *
 * @param {Pick<AuditRow, 'kind' | 'state' | 'result' | 'reason' | 'upstream_status' | 'flags'>} row
 * @returns {Badge}
 */
export function resultOf(row) {
  const { kind, state, result } = row;
  if (kind === 'event') return eventOf(row);
  if (result === 'allowed') return allowedAs(row);
  if (result) return RESULTS[result];
  return state === 'intent' ? UNDER_WAY : { kind: '', words: 'Unknown' };
}

/** @param {Pick<AuditRow, 'reason' | 'flags'>} row */
function eventOf({ reason, flags }) {
  const { ok = false, upstream_status = null, how } = changeOf(flags);
  if (reason === 'connection_tested') return describeTest({ ok, upstream_status });
  return EVENTS[reason] ?? { kind: '', words: how === undefined || how === 'broker' ? 'System' : 'Change' };
}

/** @param {Pick<AuditRow, 'upstream_status' | 'flags'>} row */
function allowedAs({ upstream_status: status, flags }) {
  const { words } = RESULTS.allowed;
  if (status !== null && !isSuccess(status)) return { kind: 'wait', words: `${words} · ${status}` };
  if (flags?.failed === true) return { kind: 'wait', words: `${words} · error` };
  const ended = flags?.ended;
  return ended === undefined || ended === 'complete' ? RESULTS.allowed : { kind: 'wait', words: `${words} · cut off` };
}

/** @type {Partial<Record<string, string>>} */
export const REASONS = {
  approved: 'a rule allows it',
  scope_not_granted: 'the scope is not granted',
  agent_suspended: 'the agent is suspended',
  agent_revoked: 'the agent is revoked',
  platform_suspended: 'the platform is switched off',
  no_permission_record: 'no grant for this platform',
  circuit_breaker_open: 'a circuit breaker is open',
  no_policy_assigned: 'the agent has no policy',
  denied_by_guardrail: 'a guardrail denies it',
  denied_by_policy: 'its policy denies it',
  endpoint_scope_mismatch: 'the scope does not cover this endpoint',
  grant_expired: 'the grant has expired',
  recipient_not_allowed: 'the recipient is not allowed',
  repo_not_allowed: 'the repository is not allowed',
  agent_inactive: 'the agent is not active yet',
  approval_required_by_policy: 'its policy requires an approval',
  approval_required_by_guardrail: 'a guardrail requires an approval',
  approval_required_by_grant: 'its grant requires an approval',
  upstream_unreachable: 'the platform could not be reached',
  upstream_response_blocked: 'the answer was withheld',
  upstream_auth_failed: 'the platform refused the credential',
  upstream_not_found: 'the platform has no such repository',
  approval_required_unsupported: 'it requires an approval, and its body is too large to be stored',
  approval_required_unsupported_for_git: 'it requires an approval, and git cannot wait',
  git_request_too_large: 'the request is too large',
  method_not_allowed: 'its HTTP method is not forwarded',
  idempotency_key_reused: 'its Idempotency-Key was used for another call',
  request_cut: 'the request ended before it was complete',
  advertised: 'a rule allows it: git requested refs',
  probe: 'a rule allows it: git probed before a push',
  platform_reauth_needed: 'the connection has to be connected again',
};

/** Every reason that has words, for a list of choices. */
export const OF_REASONS = new Map(
  Object.entries({ ...EVENT_TEXTS, ...REASONS, approved: 'allowed by a rule, or approved' }).map(([code, words]) => [
    code,
    asTitle(words ?? code),
  ]),
);

/** @param {string} words */
function asTitle(words) {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

/**
 * Returns the reason for the result of a call in words; a code without words is returned in readable form. `actor`: who approved it, as actorOf
 * returns it.
 *
 * @param {Pick<AuditRow, 'reason' | 'flags'> & Partial<Pick<AuditRow, 'standing'>>} row
 * @param {string | undefined} actor
 */
export function describeReason({ reason, flags, standing }, actor) {
  const approved = reason === 'approved' && (describeApproval(flags, actor) ?? describeStanding(flags, standing));
  const why = approved || (REASONS[reason] ?? readable(reason));
  const because = flags?.ended_because;
  return typeof because === 'string'
    ? `${why}; ended under way: ${ENDED[because] ?? REASONS[because] ?? readable(because)}`
    : why;
}

/** @param {AuditRow['flags']} flags @param {string | undefined} actor */
const describeApproval = (flags, actor) => (flags?.approval ? `approved by ${actor ?? 'an owner'}` : undefined);

/** @param {AuditRow['flags']} flags @param {AuditRow['standing'] | undefined} standing */
const describeStanding = (flags, standing) =>
  flags?.standing_approval
    ? `a standing approval${standing?.decided_by_email ? ` by ${visibleLine(standing.decided_by_email)}` : ''} allows it`
    : undefined;

/** Reasons for which a call in flight was aborted, in addition to the reasons to refuse a call. @type {Partial<Record<string, string>>} */
const ENDED = {
  platform_not_connected: 'the connection was disconnected',
  agent_key_ended: 'the key that it was signed with was replaced',
  static_key_ended: 'its static key was revoked or has expired',
  workload_ended: 'the tokens of its workload are no longer accepted',
  mcp_authorisation_ended: 'the access of the MCP client was revoked or has expired',
  person_tokens_ended: 'the person disconnected',
};

/**
 * Method and path of a call, as far as they were parsed: a malformed request may have neither.
 *
 * @param {Pick<AuditRow, 'method' | 'path'>} row
 */
export const formatCall = ({ method, path }) => [method, path].filter(Boolean).join(' ') || 'a call that was not read';

/** What the broker records about a change and about a decision. @typedef {{ by?: string, decided_by?: string, how?: string, ok?: boolean, upstream_status?: number | null }} Deciding */

const changeOf = (/** @type {AuditRow['flags']} */ flags) =>
  /** @type {Deciding} */ (flags?.change ?? flags?.approval ?? {});

/** @type {Partial<Record<string, string>>} */
export const HOW = {
  console: 'in the console',
  api: 'with the API',
  passkey: 'with a passkey',
  channel: 'with a button in a chat',
  token: 'with a one-time token',
  local: "on the broker's machine",
};

/** Actors that are not owners. @type {Partial<Record<string, string>>} */
const OTHERS = {
  broker: 'the broker, by a rule',
  time: 'the broker, at expiry',
  start: 'the configuration at the start',
  person: 'the person',
};

/**
 * Returns who did or decided it, and how; undefined when nobody is recorded.
 *
 * @param {Pick<AuditRow, 'flags'>} row
 * @param {ReadonlyMap<string, string>} names of owners and agents by id
 */
export function actorOf({ flags }, names) {
  const who = requesterOf(flags, names);
  const { how = '' } = changeOf(flags);
  return who && HOW[how] ? `${who}, ${HOW[how]}` : who;
}

/**
 * Returns the same as actorOf without how, for one line.
 *
 * @param {AuditRow['flags']} flags
 * @param {ReadonlyMap<string, string>} names
 */
export function requesterOf(flags, names) {
  const { by, decided_by, how } = changeOf(flags);
  const other = how === undefined ? undefined : OTHERS[how];
  const who = by ?? decided_by;
  const unnamed = who === 'operator' ? 'the operator' : how === 'pipeline' ? 'a removed pipeline' : who;
  return other ?? (who && visibleLine(names.get(who) ?? unnamed ?? who));
}
