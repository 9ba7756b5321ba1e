// Event handlers of form fields.

/**
 * Returns a copy of a record with some members changed; members set to undefined are removed.
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
 * Calls `hear` with the text of a field, or the choice of a select.
 *
 * @param {(value: string) => void} hear
 */
export const valueTo = (hear) => (/** @type {{ currentTarget: { value: string } }} */ event) =>
  hear(event.currentTarget.value);

/**
 * Calls `hear` with whether a checkbox is checked.
 *
 * @param {(checked: boolean) => void} hear
 */
export const checkedTo = (hear) => (/** @type {{ currentTarget: { checked: boolean } }} */ event) =>
  hear(event.currentTarget.checked);

/**
 * Calls `hear` with whether a `<details>` is open.
 *
 * @param {(open: boolean) => void} hear
 */
export const openTo = (hear) => (/** @type {{ currentTarget: { open: boolean } }} */ event) =>
  hear(event.currentTarget.open);
