// The rows of the list that are drawn: the beginning of a long list, and of a group only its head until it is opened.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('/console/inbox/slots.js').Slot} Slot */
import { isWaiting } from '/console/inbox/entries.js';

/** Number of rows drawn first, and added on request: a page of 500 cards responds slowly. */
export const DRAWN = 50;

/** `drawn`: the drawn members of a group, no more than when it was opened, because later calls must not push other rows down. */
/** @typedef {{ slot: Slot, entries: Entry[], open: boolean, drawn: Entry[] }} Row */

/**
 * @param {readonly Slot[]} slots
 * @param {ReadonlyMap<string, Entry>} shown entries that pass the filter, by key
 * @param {ReadonlyMap<string, number>} opened the number of drawn members of each open group, by its id
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
 * Returns the keys of waiting entries and the ids of their groups that can have the focus, from top to bottom.
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
 * Returns the next waiting entry after this one in the list, or the first waiting one when none follows.
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
