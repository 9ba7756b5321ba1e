/** Parsing of command line options of the bench. */

/** Returns a whole number from 1 to `most`, or `otherwise` when the option is absent. @throws Error with a message for the user */
export function wholeNumber(name: string, text: string | undefined, otherwise: number, most: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new Error(`${name}: must be a whole number from 1 to ${most}.`);
}
