// The platform's response to a call that was made, as far as its status shows.

/** @typedef {{ kind: 'good' | 'wait', words: string }} PlatformAnswer */

/** Parses the status in a summary such as `status 404, application/json, 78 bytes`; NaN without one. */
const statusIn = (/** @type {string} */ summary) => Number(/^status (\d+)/.exec(summary)?.[1]);

/** Matches the summary of a success status whose body reports an error: the suffix that broker/approvals/sealed.ts writes. */
const SAYS_FAILED = / bytes, with an error in its body$/;

/** Whether an HTTP status means that the platform did what was requested: 304 answers a conditional GET. */
export const isSuccess = (/** @type {number} */ status) => (status >= 200 && status < 300) || status === 304;

/**
 * Returns the result at the platform: only a success is good.
 *
 * @param {string} summary `result_summary` of the owner API
 * @returns {PlatformAnswer}
 */
export function platformAnswer(summary) {
  const status = statusIn(summary);
  if (SAYS_FAILED.test(summary)) return { kind: 'wait', words: `the platform answered with an error: ${summary}` };
  if (isSuccess(status) || Number.isNaN(status)) return { kind: 'good', words: `the platform answered: ${summary}` };
  if (status >= 500) return { kind: 'wait', words: `the platform failed: ${summary}` };
  if (status >= 400) return { kind: 'wait', words: `the platform refused it: ${summary}` };
  return { kind: 'wait', words: `the platform answered with a redirect, which is not followed: ${summary}` };
}
