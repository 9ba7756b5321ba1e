// Which of several calls somebody still has to open before all of them are approved. By one key and Enter nothing is approved
// that the card of a single call would not let pass: what folds, or is odd, is seen first.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { useEffect, useRef, useState } from '/console/html.js';
import { find } from '/console/inbox/decide.js';
import { hasToBeOpened } from '/console/request-view/look-closely.js';

/** Requests that are read at the same time. */
const AT_ONCE = 6;

/**
 * Reads each request once. `wanted`: whether anything has to be seen, as before an approval. `unread`: how many are not read yet;
 * `closed`: the keys of those that have to be opened; `seen(key, all)` hears whether all of an opened one was shown.
 *
 * @param {readonly CallEntry[]} entries
 * @param {boolean} wanted
 */
export function useLookedAt(entries, wanted) {
  const [unread, setUnread] = useState(wanted ? entries.length : 0);
  const [closed, setClosed] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const gone = useRef(false);
  useEffect(() => {
    if (!wanted) return;
    const left = [...entries];
    const readNext = async () => {
      for (let entry = left.shift(); entry && !gone.current; entry = left.shift()) {
        // One that cannot be read now is read again by whoever opens it; another request than was listed is not decided at all.
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
