/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/words.js').Became} Became */
import { asError } from '/console/api.js';
import { denyAllOf } from '/console/inbox/decide.js';
import { useAnnounce } from '/console/shell/announce.js';

const DENIED_ALL = { kind: 'bad', words: 'Denied, with the other calls of this agent.' };

/**
 * Denies all calls of an agent that wait, by somebody who looked at one of them: an agent that floods the inbox is not read call by call.
 * `settle`, `reload`: as useInbox answers them; `done(key)` is called when it was done.
 *
 * @param {{ settle: (key: string, became: Became) => void, reload: () => void, done: (key: string) => void }} props
 * @returns {(entry: CallEntry, note: string) => Promise<void>}
 */
export function useDenyingAll({ settle, reload, done }) {
  const announce = useAnnounce();
  return async ({ key, item }, note) => {
    try {
      const denied = await denyAllOf(item.agent.agent_id, note);
      for (const id of denied) settle(`approval-${id}`, DENIED_ALL);
      announce(`Denied ${denied.length} calls.`, 'good');
      done(key);
    } catch (failure) {
      announce(asError(failure).message, 'bad');
    } finally {
      reload();
    }
  };
}
