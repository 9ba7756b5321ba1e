// What a platform answered to a call that was made, as far as its status tells.

/** @typedef {{ kind: 'good' | 'wait', words: string }} PlatformAnswer */

/** The status in a summary such as `status 404, application/json, 78 bytes`; NaN without one. */
const statusIn = (/** @type {string} */ summary) => Number(/^status (\d+)/.exec(summary)?.[1]);

/** Of a status of success whose body says that nothing was done: what broker/approvals/sealed.ts writes at the end. */
const SAYS_FAILED = / bytes, with an error in its body$/;

/** Whether a status of HTTP says that the platform did what it was asked: 304 answers a conditional GET. */
export const isSuccess = (/** @type {number} */ status) => (status >= 200 && status < 300) || status === 304;

/**
 * What the platform did: only a success is good.
 *
 * @param {string} summary as the owner API states it in `result_summary`
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
