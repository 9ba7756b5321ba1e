// The rows of the inbox: filtered, arranged and drawn.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/filter.js').Filters} Filters */
/** @typedef {import('/console/inbox/rows.js').Row} Row */
/** @typedef {import('/console/inbox/slots.js').Slot} Slot */
import { useMemo, useRef, useState } from '/console/html.js';
import { fits } from '/console/inbox/filter.js';
import { DRAWN, rowsOf } from '/console/inbox/rows.js';
import { arrange } from '/console/inbox/slots.js';

/**
 * `rows`: the drawn rows, and `hidden`: how many are not drawn; `more()` draws more of them. `shown`: every entry that passes the filter, drawn or
 * not, in the order of the list. `draw(row, count)` opens a group with that many members, or closes it without a count. `arrangeAgain()` groups
 * everything as on a fresh page.
 *
 * @param {Entry[] | undefined} entries
 * @param {Filters} filters
 * @param {string | undefined} openKey an open entry is shown regardless of the filter
 */
export function useRows(entries, filters, openKey) {
  const slots = useRef(/** @type {Slot[]} */ ([]));
  const [opened, setOpened] = useState(/** @type {ReadonlyMap<string, number>} */ (new Map()));
  const [drawn, setDrawn] = useState(DRAWN);
  const filter = JSON.stringify(filters);
  const { all, shown } = useMemo(() => {
    slots.current = arrange(slots.current, entries ?? []);
    const fitting = (entries ?? []).filter((entry) => entry.key === openKey || fits(entry, filters));
    const byKey = new Map(fitting.map((entry) => [entry.key, entry]));
    const all = rowsOf(slots.current, byKey, opened);
    return { all, shown: all.flatMap((row) => row.entries) };
  }, [entries, filter, openKey, opened]);
  return {
    rows: all.slice(0, drawn),
    shown,
    hidden: Math.max(0, all.length - drawn),
    more: () => setDrawn((before) => before + DRAWN),
    draw: (/** @type {Row} */ { slot }, /** @type {number | undefined} */ count) =>
      setOpened((before) => {
        const now = new Map(before);
        if (count === undefined) now.delete(slot.id);
        else now.set(slot.id, count);
        return now;
      }),
    arrangeAgain: () => {
      slots.current = [];
    },
  };
}
