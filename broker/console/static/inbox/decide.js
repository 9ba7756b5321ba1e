// An owner's word on what waits, by click, key or passkey.
/** @typedef {import('../../answers.ts').AccessRequest} AccessRequest */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('../../answers.ts').Registration} Registration */
/** @typedef {import('/console/inbox/words.js').Became} Became */
/** @typedef {import('/console/inbox/words.js').Known} Known */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
import { asError, ask, Refused } from '/console/api.js';
import { whatBecame } from '/console/inbox/words.js';
import { CeremonyFailed, decideWithPasskey, hasEnded } from '/console/passkeys/ceremony.js';
import { sendStanding } from '/console/standing/send.js';

const PATHS = /** @type {const} */ ({
  approval: '/owner/approvals',
  access: '/owner/access-requests',
  registration: '/owner/registrations',
});

/** All of what an entry stands for, by its kind. @typedef {{ approval: HeldCall, access: AccessRequest, registration: Registration }} Wholes */
/** @typedef {keyof Wholes} Kind */
/** @typedef {{ kind: Kind, id: string }} One */
/**
 * What goes along with a decision.
 *
 * @typedef {import('../../answers.ts').Body<'POST', '/owner/approvals/x/approve'>
 *   | import('../../answers.ts').Body<'POST', '/owner/access-requests/x/approve'>
 *   | import('../../answers.ts').Body<'POST', '/owner/registrations/x/approve'>} Word
 */
/** @typedef {{ changed: true } | { changed?: undefined, became: Became, late?: string }} Decided */

/**
 * All that there is to know of one. `kind` and `id`: as an entry has them.
 *
 * @template {Kind} K
 * @param {{ kind: K, id: string }} one
 * @returns {Promise<Wholes[K]>}
 */
export async function find({ kind, id }) {
  const found = await ask('GET', `${PATHS[/** @type {Kind} */ (kind)]}/${id}`);
  return /** @type {Wholes[K]} */ (found);
}

/**
 * Decides; `what` is approve or deny. `word`: what goes along, such as the hash of the request that was shown, a note,
 * scopes. Answers `{ became }`; with `late`, somebody else was first, or time was over; `{ changed: true }` when the
 * request is no longer the one that was shown. Throws what is neither.
 *
 * @param {One} one
 * @param {'approve' | 'deny'} what
 * @param {Word} word
 * @returns {Promise<Decided>}
 */
export async function decide(one, what, word) {
  const verb = what === 'deny' && one.kind === 'registration' ? 'reject' : what;
  return await settling(one, async () => {
    const now = await ask('POST', `${PATHS[one.kind]}/${one.id}/${verb}`, word);
    // Which scopes no platform has stands in the whole of it only.
    return one.kind === 'registration' ? { ...(await find(one).catch(() => {})), ...now } : now;
  });
}

/**
 * The same by a passkey of whoever is signed in, of a held call.
 *
 * @param {{ kind: 'approval', id: string }} one
 * @param {'approve' | 'deny'} purpose
 * @param {string} requestHash
 * @param {string | undefined} note
 */
export async function decideCallByPasskey(one, purpose, requestHash, note) {
  return await settling(one, async () => {
    await decideWithPasskey({ purpose, id: one.id, requestHash, session: true, ...(note && { note }) });
    return await find(one);
  });
}

/**
 * Approves a held call along with the next ones like it.
 *
 * @param {{ kind: 'approval', id: string }} one
 * @param {string} requestHash
 * @param {StandingBody} standing
 * @param {string | undefined} note
 */
export async function approveWithStanding(one, requestHash, standing, note) {
  return await settling(one, () => sendStanding({ id: one.id, requestHash, standing, ...(note && { note }) }));
}

/**
 * Denies every held call of an agent that waits. Answers their ids.
 *
 * @param {string} agentId
 * @param {string} note
 */
export async function denyAllOf(agentId, note) {
  /** @type {string[]} */
  const denied = [];
  for (;;) {
    const now = await ask('POST', '/owner/approvals/deny', { agent: agentId, ...(note && { note }) });
    denied.push(...now.denied);
    if (!now.remaining) return denied;
  }
}

/**
 * Rejects every registration from a network that waits and may be decided. Answers their ids.
 *
 * @param {string} network
 */
export async function rejectAllFrom(network) {
  /** @type {string[]} */
  const rejected = [];
  for (;;) {
    const now = await ask('POST', '/owner/registrations/reject', { network });
    rejected.push(...now.rejected);
    if (!now.remaining) return rejected;
  }
}

const TOO_LATE = new Set(['already_decided', 'approval_expired', 'request_expired']);

/**
 * @param {One} one
 * @param {() => Promise<Known | undefined>} work
 * @returns {Promise<Decided>}
 */
async function settling(one, work) {
  try {
    const now = await work();
    return now ? { became: whatBecame(one.kind, now) } : { changed: true };
  } catch (error) {
    const code = error instanceof Refused ? (error.code ?? '') : '';
    const cause = error instanceof CeremonyFailed ? error.cause : error;
    if (cause instanceof Refused && cause.code === 'request_changed') return { changed: true };
    if (hasEnded(error) || TOO_LATE.has(code))
      return { became: whatBecame(one.kind, await find(one)), late: asError(error).message };
    throw error;
  }
}
