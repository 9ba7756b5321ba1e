// An owner's decision on an inbox entry, by click, key or passkey.
/** @typedef {import('../../answers.ts').AccessRequest} AccessRequest */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('../../answers.ts').Registration} Registration */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */
/** @typedef {import('/console/inbox/entry-text.js').Known} Known */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
import { asError, ask, Refused } from '/console/api.js';
import { itemOutcome } from '/console/inbox/entry-text.js';
import { CeremonyFailed, decideWithPasskey, hasEnded } from '/console/passkeys/ceremony.js';
import { sendStanding } from '/console/standing/send.js';

const PATHS = /** @type {const} */ ({
  approval: '/owner/approvals',
  access: '/owner/access-requests',
  registration: '/owner/registrations',
});

/** The complete item of an entry, by its kind. @typedef {{ approval: HeldCall, access: AccessRequest, registration: Registration }} Wholes */
/** @typedef {keyof Wholes} Kind */
/** @typedef {{ kind: Kind, id: string }} One */
/**
 * The body of a decision request.
 *
 * @typedef {import('../../answers.ts').Body<'POST', '/owner/approvals/x/approve'>
 *   | import('../../answers.ts').Body<'POST', '/owner/access-requests/x/approve'>
 *   | import('../../answers.ts').Body<'POST', '/owner/registrations/x/approve'>} Word
 */
/** @typedef {{ changed: true } | { changed?: undefined, outcome: Outcome, late?: string }} Decided */

/**
 * Reads the complete item. `kind` and `id`: of an entry.
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
 * Sends a decision; `what` is approve or deny. `word`: the request body, such as the hash of the shown request, a note, scopes. Returns the new
 * state as `outcome`; with `late` when somebody else decided first, or the entry expired; only `changed: true` when the request is no longer the
 * shown one. Throws any other error.
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
    // Only the complete registration lists scopes that no platform has any more.
    return one.kind === 'registration' ? { ...(await find(one).catch(() => {})), ...now } : now;
  });
}

/**
 * Decides a held call with a passkey of the signed-in owner; otherwise as decide.
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
 * Approves a held call together with a standing approval for future calls like it.
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
 * Denies every waiting held call of an agent. Returns their ids.
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
 * Rejects every registration from a network that waits and may be decided. Returns their ids.
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
    return now ? { outcome: itemOutcome(one.kind, now) } : { changed: true };
  } catch (error) {
    const code = error instanceof Refused ? (error.code ?? '') : '';
    const cause = error instanceof CeremonyFailed ? error.cause : error;
    if (cause instanceof Refused && cause.code === 'request_changed') return { changed: true };
    if (hasEnded(error) || TOO_LATE.has(code))
      return { outcome: itemOutcome(one.kind, await find(one)), late: asError(error).message };
    throw error;
  }
}
