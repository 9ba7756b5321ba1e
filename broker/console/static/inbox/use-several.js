// Decides the selected calls, and reports the result of each.
/** @typedef {import('../../answers.ts').SettledCall} SettledCall */
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entry-text.js').Outcome} Outcome */
import { asError } from '/console/api.js';
import { useRef, useState } from '/console/html.js';
import { decideSeveral, itemOf, settledOutcome, summaryOf } from '/console/inbox/decide-several.js';
import { useAnnounce } from '/console/shell/announce.js';

/** @typedef {{ what: 'approve' | 'deny', entries: readonly CallEntry[] }} Asked */

/**
 * `settle(key, outcome)`, `reload()`: from useInbox. `done()` is called when all results are reported.
 *
 * @param {{ settle: (key: string, outcome: Outcome) => void, reload: () => void, done: () => void }} props
 */
export function useSeveral({ settle, reload, done }) {
  const announce = useAnnounce();
  const [asked, setAsked] = useState(/** @type {Asked | undefined} */ (undefined));
  const [busy, setBusy] = useState(/** @type {string | undefined} */ (undefined));
  /** Keys being decided here now: updates about them are ignored. */
  const ours = useRef(/** @type {ReadonlySet<string>} */ (new Set()));

  const run = async (/** @type {string} */ note) => {
    if (!asked || busy) return;
    const { what, entries } = asked;
    setAsked(undefined);
    ours.current = new Set(entries.map(({ key }) => key));
    setBusy(`${what === 'approve' ? 'Approving' : 'Denying'} ${entries.length}…`);
    /** @type {SettledCall[]} */
    const heard = [];
    try {
      await decideSeveral(what, entries.map(itemOf), note, (results) => {
        heard.push(...results);
        for (const result of results) {
          const outcome = settledOutcome(result);
          if (outcome) settle(`approval-${result.approval_id}`, outcome);
        }
      });
      const { kind, words } = summaryOf(heard);
      announce(words, kind);
    } catch (failure) {
      const before = heard.length > 0 ? `${summaryOf(heard).words} Then: ` : '';
      announce(`${before}${asError(failure).message}`, 'bad');
    } finally {
      setBusy(undefined);
      reload();
      done();
    }
  };
  return {
    asked,
    ask: (/** @type {Asked} */ wanted) => wanted.entries.length > 0 && !busy && setAsked(wanted),
    cancel: () => setAsked(undefined),
    run,
    busy,
    isOurs: (/** @type {string} */ key) => ours.current.has(key),
  };
}
