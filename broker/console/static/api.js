// Asks the owner API with the session cookie.
/** @typedef {import('../answers.ts').Method} Method */
import { keepPlace } from '/console/place.js';

/** @typedef {{ error?: string, detail?: string }} RefusalAnswer */

/** What the broker refused: `code` and `status` to branch on, `message` for a person, `answer` as it came. */
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

/** The broker did not answer at all. */
class Unreachable extends Error {
  constructor() {
    super('The broker does not answer. Is it running, and are you online?');
  }
}

/**
 * What was thrown, as an error with a message for a person.
 *
 * @param {unknown} thrown
 */
export const asError = (thrown) => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/**
 * Answers the JSON. Throws Refused or Unreachable, whose messages are for a person. Without a session, leads to the
 * sign-in page, which leads back; `signIn: false` leaves that to the caller. `written`: further members of the body, each as JSON that
 * somebody wrote; it is sent as it is, because the broker refuses what parsing it here would change.
 *
 * @template {Method} M
 * @template {import('../answers.ts').Path<M>} P
 * @param {M} method
 * @param {P} path
 * @param {import('../answers.ts').Body<M, P>} [body]
 * @param {{ signIn?: boolean, written?: Readonly<Record<string, string>> }} [options]
 * @returns {Promise<import('../answers.ts').Answer<M, P>>}
 */
export async function ask(method, path, body, { signIn = true, written = {} } = {}) {
  // The header makes this a request that no other site's form or link can send.
  const headers = { 'X-Svc-Csrf': '1', ...(body !== undefined && { 'Content-Type': 'application/json' }) };
  const response = await fetch(path, {
    method,
    headers,
    cache: 'no-store',
    ...(body !== undefined && { body: jsonWith(body, written) }),
  }).catch(() => {
    throw new Unreachable();
  });
  /** @type {import('../answers.ts').Answer<M, P> & RefusalAnswer} */
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401 && signIn) {
    keepPlace();
    location.replace('/console/sign-in');
  }
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

/** @param {unknown} body @param {Readonly<Record<string, string>>} written */
function jsonWith(body, written) {
  const members = Object.entries(written).map(([name, json]) => `${JSON.stringify(name)}:${json}`);
  const rest = JSON.stringify(body).slice(1, -1);
  return `{${(rest === '' ? members : [rest, ...members]).join(',')}}`;
}
