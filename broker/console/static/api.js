// Asks the owner API with the session cookie.
import { keepPlace } from '/console/place.js';

/** What the broker refused: `code` and `status` to branch on, `message` for a person, `answer` as it came. */
export class Refused extends Error {
  constructor(status, answer) {
    super(answer.detail ?? `The broker answered ${status}.`);
    this.status = status;
    this.code = answer.error;
    this.answer = answer;
  }
}

/** The broker did not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super('The broker does not answer. Is it running, and are you online?');
  }
}

/**
 * Answers the JSON. Throws Refused or Unreachable, whose messages are for a person. Without a session, leads to the
 * sign-in page, which leads back; `signIn: false` leaves that to the caller.
 */
export async function ask(method, path, body, { signIn = true } = {}) {
  // The header makes this a request that no other site's form or link can send.
  const headers = { 'X-Svc-Csrf': '1', ...(body !== undefined && { 'Content-Type': 'application/json' }) };
  const response = await fetch(path, {
    method,
    headers,
    cache: 'no-store',
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Unreachable();
  });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401 && signIn) {
    keepPlace();
    location.replace('/console/sign-in');
  }
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}
