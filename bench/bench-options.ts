/** What a command line of the bench says. */

/** A whole number from 1 to `most`, or `otherwise` where nothing is said. @throws Error whose text is for the person at the terminal */
export function wholeNumber(name: string, text: string | undefined, otherwise: number, most: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new Error(`${name}: must be a whole number from 1 to ${most}.`);
}
