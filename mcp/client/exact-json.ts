/** Lossless JSON: identifiers of platforms may exceed the precision of a double. */

const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** Parses JSON; integers that a double cannot represent are returned as strings. Throws SyntaxError. */
export function parseExactJson(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text);
  // `source` is the third argument of revivers (ECMA-262, JSON.parse source text access); TypeScript does not know it yet.
  const reviver = (_key: string, value: unknown, { source = '' }: { source?: string } = {}): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && INTEGER.test(source) ? source : value;
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}
