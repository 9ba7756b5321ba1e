/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entries.js').RegistrationEntry} RegistrationEntry */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */
import { asError } from '/console/api.js';
import { denyAllOf, rejectAllFrom } from '/console/inbox/decide.js';
import { useAnnounce } from '/console/shell/announce.js';

const DENIED_ALL = { kind: 'bad', words: 'Denied, with the other calls of this agent.' };
const REJECTED_ALL = { kind: 'bad', words: 'Rejected, with the others from the same network.' };

/**
 * Denies all waiting calls of an agent, or all registrations from one network, after an owner reviewed one of them, so that a flood need not be
 * reviewed one by one. `settle`, `reload`: from useInbox; `done(key)` is called afterwards. `keep(key, note)` keeps the note for the next attempt.
 *
 * @param {{ settle: (key: string, outcome: Outcome) => void, reload: () => void, done: (key: string) => void, keep: (key: string, note: string) => void }} props
 * @returns {(entry: CallEntry | RegistrationEntry, note: string) => Promise<void>}
 */
export function useDenyingAll({ settle, reload, done, keep }) {
  const announce = useAnnounce();
  return async (entry, note) => {
    try {
      if (entry.kind === 'approval') {
        const denied = await denyAllOf(entry.item.agent.agent_id, note);
        for (const id of denied) settle(`approval-${id}`, DENIED_ALL);
        announce(`Denied ${denied.length} calls.`, 'good');
      } else {
        const rejected = await rejectAllFrom(entry.item.network);
        for (const id of rejected) settle(`registration-${id}`, REJECTED_ALL);
        announce(`Rejected ${rejected.length} agents.`, 'good');
      }
      done(entry.key);
    } catch (failure) {
      keep(entry.key, note);
      announce(asError(failure).message, 'bad');
    } finally {
      reload();
    }
  };
}
