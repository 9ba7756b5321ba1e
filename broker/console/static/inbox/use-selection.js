// The selection of calls to decide together. An entry that no longer waits, or is no longer shown, is not selected.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
import { useEffect, useRef, useState } from '/console/html.js';
import { isWaiting } from '/console/inbox/entries.js';
import { useAnnounce } from '/console/shell/announce.js';

const NOTHING = /** @type {ReadonlySet<string>} */ (new Set());

/**
 * `shown`: the entries that pass the filter, in list order. `isOurs(key)`: whether a decision of this page is in flight. Returns the selected
 * entries; `toggle(keys, on)` selects or deselects, without `on` the opposite of the current state; `reach(key)` selects the range from the entry
 * selected last; `clear()`.
 *
 * @param {readonly Entry[]} shown
 * @param {(key: string) => boolean} isOurs
 */
export function useSelection(shown, isOurs) {
  const [picked, setPicked] = useState(NOTHING);
  const last = useRef(/** @type {string | undefined} */ (undefined));
  const announce = useAnnounce();
  const selectable = shown.filter((entry) => entry.kind === 'approval');
  const selected = /** @type {CallEntry[]} */ (selectable.filter((entry) => picked.has(entry.key) && isWaiting(entry)));

  useEffect(() => {
    const known = new Map(shown.map((entry) => [entry.key, entry]));
    const dropped = [...picked].filter((key) => {
      const entry = known.get(key);
      return !entry || !isWaiting(entry);
    });
    if (dropped.length === 0) return;
    setPicked(new Set([...picked].filter((key) => !dropped.includes(key))));
    const elsewhere = dropped.filter((key) => known.get(key)?.gone && !isOurs(key)).length;
    if (elsewhere > 0)
      announce(
        `${elsewhere === 1 ? 'One of the selected calls was' : `${elsewhere} of the selected calls were`} decided elsewhere, or ran out of time. ${elsewhere === 1 ? 'It is' : 'They are'} no longer selected.`,
        'wait',
      );
  }, [shown]);

  /** @type {(keys: readonly string[], on?: boolean) => void} */
  const toggle = (keys, on = !keys.every((key) => picked.has(key))) => {
    const waiting = keys.filter((key) => selectable.some((entry) => entry.key === key && isWaiting(entry)));
    last.current = waiting.at(-1);
    setPicked((before) => {
      const now = new Set(before);
      for (const key of waiting) on ? now.add(key) : now.delete(key);
      return now;
    });
  };
  const reach = (/** @type {string} */ key) => {
    const keys = selectable.map((entry) => entry.key);
    const [from, to] = [keys.indexOf(last.current ?? key), keys.indexOf(key)].sort((a, b) => a - b);
    if (from === undefined || to === undefined || to < 0) return;
    toggle(keys.slice(Math.max(0, from), to + 1), true);
  };
  return {
    selected,
    toggle,
    reach,
    clear: () => setPicked(NOTHING),
    has: (/** @type {string} */ key) => picked.has(key),
  };
}
