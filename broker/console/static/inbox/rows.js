// What of the list is drawn: of a long one the beginning, and of a group its head until it is opened.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/slots.js').Slot} Slot */
import { isWaiting } from '/console/inbox/entries.js';

/** So many are drawn at first, and more each time somebody asks: a page of 500 cards answers slowly. */
export const DRAWN = 50;

/** `drawn`: of a group no more than when it was opened, because what comes then must not push others down. */
/** @typedef {{ slot: Slot, entries: Entry[], open: boolean, drawn: Entry[] }} Row */

/**
 * @param {readonly Slot[]} slots
 * @param {ReadonlyMap<string, Entry>} shown those that pass the filter, by key
 * @param {ReadonlyMap<string, number>} opened how many members are drawn of each group that is open, by its id
 * @returns {Row[]}
 */
export const rowsOf = (slots, shown, opened) =>
  slots
    .map((slot) => {
      const entries = slot.keys.map((key) => shown.get(key)).filter((entry) => entry !== undefined);
      const drawn = entries.slice(0, slot.grouped ? (opened.get(slot.id) ?? 0) : 1);
      return { slot, entries, open: opened.has(slot.id), drawn };
    })
    .filter(({ entries }) => entries.length > 0);

/**
 * What can have the focus, from top to bottom: keys of entries and ids of groups, of those that wait.
 *
 * @param {readonly Row[]} rows
 * @param {string | undefined} openKey
 */
export const focusables = (rows, openKey) =>
  rows.flatMap(({ slot, entries, drawn }) => {
    const keys = drawn.filter((entry) => isWaiting(entry) || entry.key === openKey).map(({ key }) => key);
    return slot.grouped && entries.some(isWaiting) ? [slot.id, ...keys] : keys;
  });

/**
 * What comes after it in the list and waits; the first that does when nothing comes after.
 *
 * @param {readonly Row[]} rows
 * @param {string} key
 */
export function nextAfter(rows, key) {
  const order = rows.flatMap(({ slot, entries, drawn }) => [
    ...(slot.grouped ? [{ id: slot.id, waits: drawn.length === 0 && entries.some(isWaiting) }] : []),
    ...drawn.map((entry) => ({ id: entry.key, waits: isWaiting(entry) && entry.key !== key })),
  ]);
  const at = order.findIndex(({ id }) => id === key);
  return [...order.slice(at + 1), ...order.slice(0, Math.max(0, at))].find(({ waits }) => waits)?.id;
}
