/** JSON from platforms, whose identifiers may have more digits than a double keeps. */

const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** Parses JSON; an integer that a double cannot hold comes as text, with all of its digits. Throws SyntaxError. */
export function parseExactJson(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text);
  // `source` is the third argument of revivers (ECMA-262, JSON.parse source text access); TypeScript does not know it yet.
  const reviver = (_key: string, value: unknown, { source = '' }: { source?: string } = {}): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && INTEGER.test(source) ? source : value;
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}
