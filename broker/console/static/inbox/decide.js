// An owner's word on what waits, by click, key or passkey.
import { ask } from '/console/api.js';
import { whatBecame } from '/console/inbox/words.js';
import { approveWithPasskey } from '/console/passkeys/ceremony.js';

const PATHS = {
  approval: '/owner/approvals',
  access: '/owner/access-requests',
  registration: '/owner/registrations',
};

/** All that there is to know of one. `kind` and `id`: as an entry has them. */
export const find = ({ kind, id }) => ask('GET', `${PATHS[kind]}/${id}`);

/**
 * Decides; `what` is approve or deny. `word`: what goes along, such as the hash of the request that was shown, a note,
 * scopes. Answers `{ became }`; with `late`, somebody else was first, or time was over; `{ changed: true }` when the
 * request is no longer the one that was shown. Throws what is neither.
 */
export async function decide(one, what, word) {
  const verb = what === 'deny' && one.kind === 'registration' ? 'reject' : what;
  return await settling(one, async () => {
    const now = await ask('POST', `${PATHS[one.kind]}/${one.id}/${verb}`, word);
    // Which scopes no platform has stands in the whole of it only.
    return one.kind === 'registration' ? { ...(await find(one).catch(() => {})), ...now } : now;
  });
}

/** The same by passkey, which can only approve, and only calls. The challenge is bound to the request, not to what was shown. */
export async function approveByPasskey(one, shownHash) {
  return await settling(one, async () => {
    if ((await find(one)).request_hash !== shownHash) return undefined;
    await approveWithPasskey(one.id);
    return await find(one);
  });
}

/** Denies every held call of an agent that waits. Answers their ids. */
export async function denyAllOf(agentId, note) {
  const denied = [];
  for (;;) {
    const now = await ask('POST', '/owner/approvals/deny', { agent: agentId, ...(note && { note }) });
    denied.push(...now.denied);
    if (!now.remaining) return denied;
  }
}

const TOO_LATE = new Set(['already_decided', 'approval_expired', 'request_expired']);

async function settling(one, work) {
  try {
    const now = await work();
    return now ? { became: whatBecame(one.kind, now) } : { changed: true };
  } catch (error) {
    if (error.code === 'request_changed') return { changed: true };
    if (error.ended || TOO_LATE.has(error.code))
      return { became: whatBecame(one.kind, await find(one)), late: error.message };
    throw error;
  }
}
