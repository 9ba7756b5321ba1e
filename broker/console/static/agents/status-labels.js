// Labels for the status of an agent.
/** @typedef {import('../../answers.ts').Agent} Agent */
import { visibleLine } from '../visible.js';

/** @typedef {'suspend' | 'resume' | 'revoke' | 'delete'} Verb */
/** @typedef {{ kind: string, words: string }} Badge */

/** @type {Record<Agent['status'], Badge>} */
export const STATUS = {
  active: { kind: 'good', words: 'Active' },
  suspended: { kind: 'wait', words: 'Suspended' },
  revoked: { kind: 'bad', words: 'Revoked' },
  pending: { kind: 'wait', words: 'Approved, key not collected' },
  pending_bind: { kind: 'wait', words: 'No key yet' },
  deleted: { kind: '', words: 'Deleted' },
};

/**
 * Reasons other than its own status that stop an agent from acting.
 *
 * @type {Record<NonNullable<Agent['contained']>, Badge & { why?: string }>}
 */
export const CONTAINED = {
  expired: { kind: 'bad', words: 'Expired' },
  parent_suspended: {
    kind: 'wait',
    words: 'Stopped with its parent',
    why: 'Its parent is suspended, so its calls are refused too.',
  },
  parent_revoked: {
    kind: 'bad',
    words: 'Stopped with its parent',
    why: 'Its parent is revoked, so its calls are refused permanently.',
  },
  parent_expired: {
    kind: 'bad',
    words: 'Stopped with its parent',
    why: 'Its parent has expired, so its calls are refused permanently.',
  },
  all_stopped: {
    kind: 'wait',
    words: 'Stopped with all',
    why: 'All agents of the organisation are stopped, so its calls are refused.',
  },
};

/** @type {Partial<Record<string, string>>} */
const CAUSES = {
  owner_manual: 'Stopped by an owner',
  suspended_by_policy: 'Suspended by a guardrail',
  anomaly_auto_suspend: 'Suspended by the broker, because its calls were unusual',
};

export const describeCause = (/** @type {string | null} */ cause) => CAUSES[cause ?? ''] ?? 'Stopped';

const PAUSED = { kind: 'wait', words: 'Paused' };

/**
 * Returns the state of an agent as a badge: its own status, unless something else stops it from acting.
 *
 * @param {Agent} agent
 * @returns {Badge}
 */
export function badgeOf({ status, contained, breakers }) {
  const held = contained && (status === 'active' || contained === 'expired') ? CONTAINED[contained] : undefined;
  return held ?? (status === 'active' && breakers.length > 0 ? PAUSED : STATUS[status]);
}

/** @type {Partial<Record<string, (about: string | null) => string>>} */
const BREAKERS = {
  breaker_auth_failure: (about) => `Too many tokens with a wrong signature${about ? ` from ${about}` : ''}`,
  breaker_api_error: () => 'Too many malformed calls',
  breaker_upstream_failure: (about) => `${about ?? 'The platform'} failed too often`,
};

/**
 * Describes what an open breaker refuses, and for how long.
 *
 * @param {Agent['breakers'][number]} breaker
 */
export const describePause = ({ cause, about, retry_after_seconds }) =>
  `${visibleLine(BREAKERS[cause]?.(about) ?? describeCause(cause))}: such calls are refused for another ${retry_after_seconds} s.`;

/**
 * Actions that an owner can take on an agent in each status.
 *
 * @type {Record<Agent['status'], Verb[]>}
 */
export const MOVES = {
  active: ['suspend', 'revoke'],
  suspended: ['resume', 'revoke'],
  pending: ['revoke'],
  pending_bind: ['revoke'],
  revoked: ['delete'],
  deleted: [],
};

/**
 * The texts of the confirmation for each action.
 *
 * @type {Record<Verb, { name: string, title: string, what: string, done: string, kind: string }>}
 */
export const MOVE = {
  suspend: {
    name: 'Suspend…',
    title: 'Suspend',
    what: 'All calls of the agent and its children are refused from the next one on, until somebody resumes it. Pending decisions stay pending.',
    done: 'is suspended.',
    kind: 'danger',
  },
  resume: {
    name: 'Resume…',
    title: 'Resume',
    what: 'It may call again immediately, with everything that it was granted.',
    done: 'is active again.',
    kind: 'primary',
  },
  revoke: {
    name: 'Revoke…',
    title: 'Revoke',
    what: 'This cannot be undone. All calls of the agent and its children are refused from the next one on, and its held calls and access requests end.',
    done: 'is revoked.',
    kind: 'danger',
  },
  delete: {
    name: 'Delete…',
    title: 'Delete',
    what: 'The agent is no longer listed, and its name can be given to another agent. Its audit records are kept.',
    done: 'is deleted.',
    kind: 'danger',
  },
};

/** The maximum number of calls that the broker counts for one agent. */
const MAX_COUNTED = 2_000;

/**
 * `12 · 1 refused · 2 held`.
 *
 * @param {NonNullable<Agent['activity']>} activity
 */
export function describeCalls({ calls, refused, held }) {
  const all = calls >= MAX_COUNTED ? `${MAX_COUNTED.toLocaleString()} or more` : calls.toLocaleString();
  return [all, refused > 0 && `${refused.toLocaleString()} refused`, held > 0 && `${held.toLocaleString()} held`]
    .filter(Boolean)
    .join(' · ');
}

/** Number of held calls and access requests of an agent that wait for a decision. */
export const waitingOf = (/** @type {Pick<Agent, 'activity'>} */ { activity }) =>
  (activity?.waiting_calls ?? 0) + (activity?.waiting_requests ?? 0);
