// Whether a connection works, as far as known: a stored credential that was never used does not prove that it works.
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {{ kind: string, words: string }} Badge */
/** @typedef {Badge & { at: string, detail: string }} Outcome */
import { isSuccess } from '../request-view/answer.js';

/**
 * Returns the result of a test as a badge. A response such as 404 at the base address shows only that the platform was reached.
 *
 * @param {{ ok: boolean, upstream_status: number | null }} test
 * @returns {Badge}
 */
export function describeTest({ ok, upstream_status: status }) {
  if (ok) return status !== null && isSuccess(status) ? { kind: 'good', words: 'Worked' } : REACHED;
  if (status === null) return { kind: 'bad', words: 'Not reached' };
  // A success status without success: the platform refused the credential in the body, as Slack does.
  const isRefusal = status === 401 || status === 403 || isSuccess(status);
  return { kind: 'bad', words: isRefusal ? 'Refused' : 'Failed' };
}

const REACHED = { kind: '', words: 'Reached' };

/** @type {(test: NonNullable<Connection['last_test']>) => Outcome} */
const ofTest = (test) => ({ ...describeTest(test), at: test.at, detail: `Last test: ${test.detail}` });

/** @type {(use: NonNullable<Connection['last_use']>) => Outcome} */
function ofUse({ at, ok, upstream_status: status }) {
  if (ok) return { at, kind: 'good', words: 'Worked', detail: `The platform answered a call with ${status}.` };
  const answered = status === null ? '' : ` (${status})`;
  return { at, kind: 'bad', words: 'Refused', detail: `The platform refused the credential of a call${answered}.` };
}

/**
 * Returns the newer of the last test and the last use; undefined when the connection was never used.
 *
 * @param {Pick<Connection, 'last_test' | 'last_use'>} connection
 * @returns {Outcome | undefined}
 */
export function outcomeOf({ last_test, last_use }) {
  const known = [last_test && ofTest(last_test), last_use && ofUse(last_use)].filter((one) => one !== null);
  return known.sort((a, b) => b.at.localeCompare(a.at))[0];
}

/** Badges of states that matter more than any test result. @type {Partial<Record<Connection['state'], Badge>>} */
export const STATE = {
  reauth_needed: { kind: 'bad', words: 'Needs to be connected again' },
  needs_attention: { kind: 'bad', words: 'Needs attention' },
  not_connected: { kind: 'wait', words: 'Not connected' },
};

/** Whether the connection needs no credential of its own because each person connects their own account. @param {Pick<Connection, 'state' | 'per_person'>} connection */
export const isOfPeople = ({ state, per_person }) => per_person && state === 'not_connected';

/**
 * Returns the badge of a connection: its state when somebody has to act, otherwise the result of the last test or use.
 *
 * @param {Pick<Connection, 'state' | 'per_person' | 'last_test' | 'last_use'>} connection
 * @returns {Badge & { at?: string }} `at`: when it was tested or used
 */
export const badgeOf = (connection) =>
  isOfPeople(connection)
    ? { kind: '', words: 'One token per person' }
    : (STATE[connection.state] ?? outcomeOf(connection) ?? { kind: '', words: 'Not tried yet' });

/** Badge kinds from the worst to the best. */
const WORST_FIRST = ['bad', 'wait', '', 'good'];

/**
 * Returns one badge for all connections of a platform: the worst of theirs, with their number. Connections that nobody connected yet are not
 * counted; undefined when no others exist.
 *
 * @param {readonly Pick<Connection, 'state' | 'per_person' | 'last_test' | 'last_use'>[]} connections
 * @returns {Badge | undefined} `words`: `1 connection · Worked`, `3 connections · 1 needs attention`
 */
export function badgeOfAll(connections) {
  const badges = connections.filter((one) => one.state !== 'not_connected' || isOfPeople(one)).map(badgeOf);
  const [worst] = badges.toSorted((a, b) => WORST_FIRST.indexOf(a.kind) - WORST_FIRST.indexOf(b.kind));
  if (!worst) return undefined;
  const count = badges.length === 1 ? '1 connection' : `${badges.length} connections`;
  const like = badges.filter(({ words }) => words === worst.words).length;
  const words =
    like === badges.length ? worst.words : `${like} ${worst.words.slice(0, 1).toLowerCase()}${worst.words.slice(1)}`;
  return { kind: worst.kind, words: `${count} · ${words}` };
}
