/** Asserts values whose presence was checked before in a way that the type cannot express. */

/**
 * Returns the value with a non-nullable type. `what` names it in the error.
 *
 * @throws Error when it is missing, which is a bug of the broker.
 */
export function present<T>(value: T, what: string): NonNullable<T> {
  if (value === undefined || value === null) throw new Error(`Internal error: no ${what}.`);
  return value;
}
