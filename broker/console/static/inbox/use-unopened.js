// Tracks which of several calls an owner still has to open before all of them are approved: key press and Enter approve nothing
// that the card of a single call would not allow. Requests with folded or unusual content must be seen first.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { useEffect, useRef, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';
import { hasToBeOpened } from '/console/request-view/has-to-be-opened.js';

/** Maximum number of concurrent reads. */
const AT_ONCE = 6;

/**
 * Reads each request once. `wanted`: whether requests have to be seen, as before an approval. `unread`: how many are not read yet; `closed`: keys
 * of entries that have to be opened; `seen(key, all)` receives whether all of an opened entry was shown.
 *
 * @param {readonly CallEntry[]} entries
 * @param {boolean} wanted
 */
export function useUnopened(entries, wanted) {
  const [unread, setUnread] = useState(wanted ? entries.length : 0);
  const [closed, setClosed] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const gone = useRef(false);
  useEffect(() => {
    if (!wanted) return;
    const left = [...entries];
    const readNext = async () => {
      for (let entry = left.shift(); entry && !gone.current; entry = left.shift()) {
        // A request that cannot be read now is read again when its entry is opened; a request that differs from the listed one is not decided.
        const held = await find(entry).catch(() => undefined);
        const { key } = entry;
        if (!held || (held.request_hash === entry.item.request_hash && hasToBeOpened(held)))
          setClosed((before) => new Set(before).add(key));
        setUnread((before) => before - 1);
      }
    };
    for (let reader = 0; reader < AT_ONCE; reader++) readNext();
    return () => {
      gone.current = true;
    };
  }, []);
  const seen = (/** @type {string} */ key, /** @type {boolean} */ all) =>
    all && setClosed((before) => new Set([...before].filter((other) => other !== key)));
  return { unread, closed, seen };
}
