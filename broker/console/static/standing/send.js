// Sends an approval with a standing approval: by the session, or signed by passkey where the organisation requires it.
/** @typedef {import('../../answers.ts').DecidedNow} DecidedNow */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
import { ask, Refused } from '/console/api.js';
import { signStanding } from '/console/passkeys/ceremony.js';

/**
 * Returns the current held call. Throws Refused, CeremonyFailed.
 *
 * @param {{ id: string, requestHash: string, standing: StandingBody, note?: string }} decision
 * @returns {Promise<DecidedNow>}
 */
export async function sendStanding({ id, requestHash, standing, note }) {
  const word = { standing, request_hash: requestHash, ...(note && { note }) };
  try {
    return /** @type {DecidedNow} */ (await ask('POST', `/owner/approvals/${id}/approve`, word));
  } catch (error) {
    if (!(error instanceof Refused && error.code === 'verification_failed')) throw error;
    return await signStanding({ id, requestHash, standing, ...(note && { note }) });
  }
}
