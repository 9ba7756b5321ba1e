// Whether a connection works, as far as anybody knows: a stored credential that was never used is not yet a connection that works.
/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {{ kind: string, words: string }} Badge */
/** @typedef {Badge & { at: string, detail: string }} Outcome */
import { isSuccess } from '../request-view/answer.js';

/**
 * What a test showed. An answer such as 404 at the base address shows that the platform was reached, and no more.
 *
 * @param {{ ok: boolean, upstream_status: number | null }} test
 * @returns {Badge}
 */
export function testInWords({ ok, upstream_status: status }) {
  if (ok) return status !== null && isSuccess(status) ? { kind: 'good', words: 'Worked' } : REACHED;
  if (status === null) return { kind: 'bad', words: 'Not reached' };
  // A success that is none: the platform refused the credential in the body, as Slack does.
  const isRefusal = status === 401 || status === 403 || isSuccess(status);
  return { kind: 'bad', words: isRefusal ? 'Refused' : 'Failed' };
}

const REACHED = { kind: '', words: 'Reached' };

/** @type {(test: NonNullable<Connection['last_test']>) => Outcome} */
const ofTest = (test) => ({ ...testInWords(test), at: test.at, detail: `Last test: ${test.detail}` });

/** @type {(use: NonNullable<Connection['last_use']>) => Outcome} */
function ofUse({ at, ok, upstream_status: status }) {
  if (ok) return { at, kind: 'good', words: 'Worked', detail: `The platform answered a call with ${status}.` };
  const answered = status === null ? '' : ` (${status})`;
  return { at, kind: 'bad', words: 'Refused', detail: `The platform refused the credential of a call${answered}.` };
}

/**
 * The newest of what is known; undefined: nobody has tried it yet.
 *
 * @param {Pick<Connection, 'last_test' | 'last_use'>} connection
 * @returns {Outcome | undefined}
 */
export function outcomeOf({ last_test, last_use }) {
  const known = [last_test && ofTest(last_test), last_use && ofUse(last_use)].filter((one) => one !== null);
  return known.sort((a, b) => b.at.localeCompare(a.at))[0];
}

/** What has to be said whatever was tried. @type {Partial<Record<Connection['state'], Badge>>} */
export const STATE = {
  reauth_needed: { kind: 'bad', words: 'Needs to be connected again' },
  needs_attention: { kind: 'bad', words: 'Needs attention' },
  not_connected: { kind: 'wait', words: 'Not connected' },
};

/**
 * The badge of a connection: its state where somebody has to do something, else what came of the last try.
 *
 * @param {Pick<Connection, 'state' | 'last_test' | 'last_use'>} connection
 * @returns {Badge & { at?: string }} `at`: when it was tried
 */
export const badgeOf = (connection) =>
  STATE[connection.state] ?? outcomeOf(connection) ?? { kind: '', words: 'Not tried yet' };
