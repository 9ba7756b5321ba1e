// Calls the owner API with the session cookie.
/** @typedef {import('../answers.ts').Method} Method */
import { keepPlace } from '/console/place.js';

/** @typedef {{ error?: string, detail?: string, signed_in_as?: string }} RefusalAnswer */

const READ_MS = 60_000;
/** More than any change takes, also one that waits for a platform or an authorization server. */
const CHANGE_MS = 120_000;

/** The owner whom this page shows, as `GET /owner/me` last answered. @type {string | undefined} */
let shownOwner;
/** Asks who is signed in, or applies to whoever it is. */
const OF_ANYBODY = new Set(['/owner/me', '/owner/sign-out']);
const OTHER_OWNER = 'svc-other-owner';
const FORBIDDEN = 'svc-forbidden';

/**
 * Calls `hear` when the broker refuses a request because another owner signed in meanwhile, in another tab of this browser: nothing was read or
 * changed, and the page has to ask who is signed in. Returns a function that stops it.
 *
 * @param {(error: Error) => void} hear
 */
export function onOtherOwner(hear) {
  const heard = (/** @type {Event} */ event) => event instanceof CustomEvent && hear(event.detail);
  addEventListener(OTHER_OWNER, heard);
  return () => removeEventListener(OTHER_OWNER, heard);
}

/**
 * Calls `hear` when the role of the signed-in owner may have changed: a change was refused for it, or the page is looked at again. Returns a function
 * that stops it.
 *
 * @param {() => unknown} hear
 */
export function onRoleInDoubt(hear) {
  const seen = () => document.visibilityState === 'visible' && hear();
  addEventListener(FORBIDDEN, hear);
  document.addEventListener('visibilitychange', seen);
  return () => {
    removeEventListener(FORBIDDEN, hear);
    document.removeEventListener('visibilitychange', seen);
  };
}

/** An error response of the broker: `code` and `status` to branch on, `message` for a person, `answer` as received. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {RefusalAnswer} answer
   */
  constructor(status, answer) {
    super(answer.detail ?? `The broker answered ${status}.`);
    this.status = status;
    this.code = answer.error;
    this.answer = answer;
  }
}

const MAY_BE_MADE = 'Your change may have been made: reload the page, or look at the activity, before you repeat it.';

/** The broker did not respond, or not in time. `changes`: whether the request may have changed something. */
class Unreachable extends Error {
  /** @param {boolean} changes */
  constructor(changes) {
    super(`The broker does not answer. Is it running, and are you online?${changes ? ` ${MAY_BE_MADE}` : ''}`);
  }
}

/** A success response that is not JSON: the connection was lost in the middle of the response, or a proxy responded in place of the broker. */
class CutShort extends Error {
  /** @param {boolean} changes */
  constructor(changes) {
    super(`The response of the broker is incomplete. ${changes ? MAY_BE_MADE : 'Try again.'}`);
  }
}

/** Requests with POST that only read, try or begin something. Signing in and out are no changes that a person would look for. */
const CHANGES_NOTHING = /^\/owner\/(simulate|governance\/plan$|sign-(in|out)$)|\/(test|begin|oauth\/start)$/;

/** Whether a request may change what an owner then sees. @param {string} method @param {string} path @param {unknown} body */
function isChange(method, path, body) {
  if (method === 'GET' || CHANGES_NOTHING.test(path)) return false;
  const { dry_run: isTried, purpose } = /** @type {{ dry_run?: boolean, purpose?: string }} */ (body ?? {});
  return isTried !== true && purpose !== 'sign-in';
}

/**
 * Converts a thrown value to an error with a message for a person.
 *
 * @param {unknown} thrown
 */
export const asError = (thrown) => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/**
 * Sends a request and returns the JSON of the response. Throws Refused, Unreachable or CutShort, whose messages are for a person. Without a session
 * it navigates to the sign-in page, which leads back; `signIn: false` leaves that to the caller. `written`: further members of the body, each as
 * JSON text that a person wrote; it is sent unchanged, because the broker rejects JSON that parsing here would alter (duplicate members, for
 * example). `withinMs`: the timeout, response included; by default 60 seconds for a GET and two minutes for others, because a browser may lose
 * its connection without noticing, and a pending request delays later ones.
 *
 * @template {Method} M
 * @template {import('../answers.ts').Path<M>} P
 * @param {M} method
 * @param {P} path
 * @param {import('../answers.ts').Body<M, P>} [body]
 * @param {{ signIn?: boolean, written?: Readonly<Record<string, string>>, withinMs?: number }} [options]
 * @returns {Promise<import('../answers.ts').Answer<M, P>>}
 */
export async function ask(
  method,
  path,
  body,
  { signIn = true, written = {}, withinMs = method === 'GET' ? READ_MS : CHANGE_MS } = {},
) {
  // The first header makes this a request that a form or link on another site cannot send; the second has it refused under the session of another owner.
  const headers = {
    'X-Svc-Csrf': '1',
    ...(shownOwner !== undefined && !OF_ANYBODY.has(path) && { 'X-Svc-Owner': shownOwner }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(path, {
    method,
    headers,
    cache: 'no-store',
    ...(body !== undefined && { body: jsonWith(body, written) }),
    signal: AbortSignal.timeout(withinMs),
  }).catch(() => {
    throw new Unreachable(isChange(method, path, body));
  });
  /** @type {(import('../answers.ts').Answer<M, P> & RefusalAnswer) | undefined} */
  const answer = await response.json().catch(() => undefined);
  if (response.status === 401 && signIn) {
    keepPlace({ undone: method !== 'GET' });
    location.replace('/console/sign-in');
  }
  if (!response.ok) {
    const refused = new Refused(response.status, answer ?? {});
    if (answer?.signed_in_as !== undefined) dispatchEvent(new CustomEvent(OTHER_OWNER, { detail: refused }));
    if (refused.code === 'forbidden' && method !== 'GET') dispatchEvent(new CustomEvent(FORBIDDEN));
    throw refused;
  }
  if (answer === undefined) throw new CutShort(isChange(method, path, body));
  if (path === '/owner/me') shownOwner = /** @type {import('../answers.ts').Me} */ (answer).id;
  return answer;
}

/** @param {unknown} body @param {Readonly<Record<string, string>>} written */
function jsonWith(body, written) {
  const members = Object.entries(written).map(([name, json]) => `${JSON.stringify(name)}:${json}`);
  const rest = JSON.stringify(body).slice(1, -1);
  return `{${(rest === '' ? members : [rest, ...members]).join(',')}}`;
}
