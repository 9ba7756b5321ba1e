// Sentences for inbox entries and their outcomes.
/** @typedef {import('../../answers.ts').AccessRequest} AccessRequest */
/** @typedef {import('../../answers.ts').DecidedAccessRequest} DecidedAccessRequest */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('../../answers.ts').ListedCall} ListedCall */
/** @typedef {import('../../answers.ts').Registration} Registration */
/** @typedef {import('../../answers.ts').ScopesOn} ScopesOn */
/** @typedef {import('../../answers.ts').ListedAccessRequest} ListedAccessRequest */
/** @typedef {import('../../answers.ts').ListedRegistration} ListedRegistration */
import { platformAnswer } from '../request-view/answer.js';
import { approvedInPart } from '../request-view/approvers.js';
import { visibleLine } from '../visible.js';

/** @type {Partial<Record<string, string>>} */
const REASONS = {
  approval_required_by_policy: 'its policy',
  approval_required_by_guardrail: 'a guardrail',
  approval_required_by_grant: 'its grant, as every call with it',
};

/**
 * Returns which rule held a call: `rule refunds-wait`, `guardrail no-deletes`.
 *
 * @param {ListedCall['held_because']} because
 */
export function heldBy({ reason, detail, rules }) {
  const holding = rules.filter(({ effect }) => effect === 'require_approval');
  if (holding.length === 0) return REASONS[reason] ?? visibleLine(detail ?? reason);
  return holding.map(describeRule).join(' and ');
}

/** A rule without a name of its own is described by its effect; where that is unknown, its name is already `rule 2`. */
const describeRule = (/** @type {ListedCall['held_because']['rules'][number]} */ { source, name, says }) =>
  says
    ? `the rule “${visibleLine(says)}”`
    : source === 'guardrail'
      ? `guardrail ${visibleLine(name)}`
      : visibleLine(/^rule \d+$/.test(name) ? name : `rule ${name}`);

/** @type {Partial<Record<string, string>>} */
const LACKS = {
  not_connected: 'The platform has to be connected',
  not_granted: 'It is not granted',
  grant_expired: 'Its grant has expired',
  needs_consent: 'The connection needs more consent',
  scope_denied: 'Its policy or a guardrail denies it',
};

/** Why the agent's call was refused when it asked for access. */
export const describeLack = (/** @type {string} */ reasonCode) => LACKS[reasonCode] ?? reasonCode.replaceAll('_', ' ');

/** What an access request is for, as a title: a scope, or the whole platform. */
export const askedScope = (/** @type {Pick<AccessRequest, 'scope'>} */ { scope }) =>
  scope === null ? 'access' : visibleLine(scope);

/** Returns the names of scopes: as they are, or `demo:read on demo` when grouped by platform. */
export const namesOf = (/** @type {readonly (string | ScopesOn[number])[]} */ scopes) =>
  scopes.flatMap((one) =>
    typeof one === 'string' ? [one] : one.scopes.map((scope) => `${scope} on ${one.platformId}`),
  );

/**
 * An item in the inbox list, by kind.
 * @typedef {{ kind: 'approval', item: ListedCall } | { kind: 'access', item: ListedAccessRequest } | { kind: 'registration', item: ListedRegistration }} Listed
 */

/**
 * Returns the name of an agent; for a child with that of its parent, which chose the name of the child.
 *
 * @param {{ name: string, parent: { name: string } | null }} agent
 */
export const nameWithParent = ({ name, parent }) => (parent ? `${name} (a child of ${parent.name})` : name);

/** Describes an item in one line without markup: `refund 45.00 EUR of payment pay_1 on sandbox for triage`. */
export const oneLine = (/** @type {Listed} */ { kind, item }) =>
  visibleLine(
    kind === 'registration'
      ? `${item.agent_name} asks to become an agent`
      : `${kind === 'approval' ? item.sentence.text : askedScope(item)} on ${item.platform_name} for ${nameWithParent(item.agent)}`,
  );

const byWhom = (/** @type {{ decided_by_email?: string | null }} */ { decided_by_email }) =>
  decided_by_email ? ` by ${visibleLine(decided_by_email)}` : '';

/** `underWay`: the outcome is not final yet; `waits`: the item still waits for others. @typedef {{ kind: string, words: string, underWay?: true, waits?: true }} Outcome */

const EXPIRED = { kind: '', words: 'Nobody decided in time. The agent has to ask again.' };
const ENDED = { kind: '', words: 'It ended with its agent. The call is never made.' };
const REQUEST_ENDED = { kind: '', words: 'It ended with its agent.' };
const GONE = { kind: '', words: 'It no longer waits.' };

/**
 * Returns the outcome of a held call: `kind` is good, wait, bad or empty. Only a call that was made and succeeded is good.
 *
 * @param {Partial<HeldCall>} held
 * @returns {Outcome}
 */
function ofCall(held) {
  const by = byWhom(held);
  if (held.status === 'denied') return { kind: 'bad', words: `Denied${by}. The call is never made.` };
  if (held.status === 'expired') return held.agent?.ended ? ENDED : EXPIRED;
  if (held.status === 'pending' && held.approvers && held.approvers.given > 0)
    return { kind: 'wait', words: approvedInPart(held.approvers), waits: true };
  if (held.status !== 'approved') return GONE;
  if (held.execution_error) return ofFailed(by, held.execution_error, held.executed_at ?? null);
  if (!held.executed_at) return { kind: 'wait', words: `Approved${by}. The call is under way.`, underWay: true };
  const { kind, words } = platformAnswer(visibleLine(held.result_summary ?? ''));
  if (kind !== 'good') return { kind, words: `Approved${by} and made, but ${words}.${platformSays(held)}` };
  return { kind, words: `Approved${by} and made: ${visibleLine(held.result_summary ?? 'the platform answered')}.` };
}

/** The platform's own error message, when it gave one. */
const platformSays = (/** @type {Partial<HeldCall>} */ { platform_message }) =>
  platform_message ? ` The platform says: “${visibleLine(platform_message)}”` : '';

/**
 * Approved, but without a response: some of these calls were made, and for some it is unknown.
 *
 * @param {string} by
 * @param {string} error
 * @param {string | null} executedAt
 */
function ofFailed(by, error, executedAt) {
  const words = visibleLine(error);
  if (error.startsWith('outcome unknown')) return { kind: 'wait', words: `Approved${by}, ${words}` };
  return executedAt === null
    ? { kind: 'bad', words: `Approved${by}, but not made: ${words}` }
    : { kind: 'wait', words: `Approved${by} and made, but: ${words}` };
}

/** @param {Partial<DecidedAccessRequest>} request */
function ofRequest(request) {
  const by = byWhom(request);
  if (request.status === 'denied') return { kind: 'bad', words: `Denied${by}.` };
  if (request.status === 'expired') return request.agent?.ended ? REQUEST_ENDED : EXPIRED;
  if (request.status !== 'approved') return GONE;
  const granted = `Granted${by}: ${visibleLine((request.granted ?? []).join(', '))}.`;
  const steps = (request.next_steps ?? []).map(({ detail }) => visibleLine(detail));
  return steps.length > 0
    ? { kind: 'wait', words: `${granted} Still to do: ${steps.join(' ')}` }
    : { kind: 'good', words: `${granted} It is in force now.` };
}

/** Maximum number of listed scopes, so that a screen reader does not read an endless list. */
const MAX = 8;

/** @param {ScopesOn} scopes */
function listed(scopes) {
  const names = namesOf(scopes);
  const more = names.length > MAX ? ` and ${names.length - MAX} more` : '';
  return visibleLine(names.slice(0, MAX).join(', ')) + more;
}

/**
 * Filters the scopes of one list by the predicate.
 *
 * @param {ScopesOn} scopesOn
 * @param {(platformId: string, scope: string) => boolean} is
 */
const only = (scopesOn, is) =>
  scopesOn.map(({ platformId, scopes }) => ({ platformId, scopes: scopes.filter((scope) => is(platformId, scope)) }));

const stands = (/** @type {ScopesOn} */ scopesOn, /** @type {string} */ platformId, /** @type {string} */ scope) =>
  scopesOn.some((one) => one.platformId === platformId && one.scopes.includes(scope));

/** An agent is pending until its key is collected. */
function ofKey(/** @type {Partial<Registration>} */ { claimed_at, claim_until }) {
  if (claimed_at) return 'It has collected its key.';
  if (Date.parse(claim_until ?? '') <= Date.now()) return 'It did not collect its key in time.';
  return 'It can collect its key within the hour, and call from then on.';
}

/** @param {Partial<Registration> & { dropped?: ScopesOn }} asked */
function ofRegistration(asked) {
  const by = byWhom(asked);
  if (asked.status === 'rejected') return { kind: 'bad', words: `Rejected${by}. It never gets a key.` };
  if (asked.status === 'expired') return { kind: '', words: 'Nobody decided in time. It has to register again.' };
  if (asked.status !== 'approved') return GONE;
  const granted = asked.granted ?? [];
  const unknown = [...(asked.dropped ?? []), ...(asked.unknown_scopes ?? [])];
  const not = only(asked.requested_scopes ?? [], (platform, scope) => !stands(granted, platform, scope));
  const dropped = listed(only(not, (platform, scope) => stands(unknown, platform, scope)));
  const left = listed(only(not, (platform, scope) => !stands(unknown, platform, scope)));
  const sentences = [
    `Approved${by}: it is an agent now.`,
    granted.length > 0 ? `Granted: ${listed(granted)}.` : 'Granted: nothing yet.',
    left && `Left out: ${left}.`,
    dropped && `Dropped, because no platform has it: ${dropped}.`,
    ofKey(asked),
  ];
  return { kind: 'good', words: sentences.filter(Boolean).join(' ') };
}

/** What is known about a decided item, if anything. @typedef {Partial<HeldCall> | Partial<DecidedAccessRequest> | Partial<Registration>} Known */

/**
 * Returns the outcome of an item that waited: `kind` is good, wait, bad or empty. About a deleted item nothing is known.
 *
 * @param {Listed['kind']} kind
 * @param {Known} item
 * @returns {Outcome}
 */
export function itemOutcome(kind, item) {
  if (kind === 'approval') return ofCall(/** @type {Partial<HeldCall>} */ (item));
  if (kind === 'access') return ofRequest(/** @type {Partial<DecidedAccessRequest>} */ (item));
  return ofRegistration(/** @type {Partial<Registration>} */ (item));
}
