/** For values that are there by what was checked before, where the type cannot say it. */

/**
 * The value itself, for its type. `what` names it.
 *
 * @throws Error when there is none, which is a fault of the broker.
 */
export function present<T>(value: T, what: string): NonNullable<T> {
  if (value === undefined || value === null) throw new Error(`Internal error: no ${what}.`);
  return value;
}
