// What people write and choose, for whoever hears of it.

/**
 * A record with some members changed; those that are undefined then are taken out.
 *
 * @template {object} T
 * @param {T | undefined} before
 * @param {{ [Member in keyof T]?: T[Member] | undefined }} to
 * @returns {T}
 */
export const changedBy = (before, to) =>
  /** @type {T} */ (
    Object.fromEntries(Object.entries({ ...before, ...to }).filter(([, value]) => value !== undefined))
  );

/**
 * Hears the text of a field, or the choice of a list.
 *
 * @param {(value: string) => void} hear
 */
export const valueTo = (hear) => (/** @type {{ currentTarget: { value: string } }} */ event) =>
  hear(event.currentTarget.value);

/**
 * Hears whether a box is ticked.
 *
 * @param {(checked: boolean) => void} hear
 */
export const checkedTo = (hear) => (/** @type {{ currentTarget: { checked: boolean } }} */ event) =>
  hear(event.currentTarget.checked);

/**
 * Hears whether a `<details>` is open.
 *
 * @param {(open: boolean) => void} hear
 */
export const openTo = (hear) => (/** @type {{ currentTarget: { open: boolean } }} */ event) =>
  hear(event.currentTarget.open);
