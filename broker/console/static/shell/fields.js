// What people write and choose, for whoever hears of it.

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
