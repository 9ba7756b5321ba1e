/** Checks whether a number of a JSON text keeps its value when it is parsed to a double. */

type Decimal = { negative: boolean; digits: string; exponent: number };

/** A number of at most so many characters, written without an exponent, is exact: a double keeps 15 decimal digits (IEEE 754). */
export const ALWAYS_EXACT = 15;

/**
 * `written` is a JSON number (RFC 8259 §6). True when JSON.stringify would write the parsed number with the same decimal value: `1.0`, `1e2`, `-0` and `0.1`
 * yes; `1e999`, `1e-999`, `12345678901234567890` and `0.1000000000000000055` no. Linear in its length.
 */
export function isExactDecimal(written: string): boolean {
  const parsed = Number(written);
  if (!Number.isFinite(parsed)) return false;
  const before = decimalOf(written);
  const after = decimalOf(String(parsed));
  if (before.digits === '') return after.digits === '';
  return before.digits === after.digits && before.exponent === after.exponent && before.negative === after.negative;
}

/** Returns the value as digits × 10^exponent, the digits without zeros at either end; no digits for zero. */
function decimalOf(written: string): Decimal {
  const negative = written.startsWith('-');
  const mark = written.search(/[eE]/);
  const mantissa = written.slice(negative ? 1 : 0, mark === -1 ? undefined : mark);
  let exponent = mark === -1 ? 0 : Number(written.slice(mark + 1));
  const dot = mantissa.indexOf('.');
  const all = dot === -1 ? mantissa : mantissa.slice(0, dot) + mantissa.slice(dot + 1);
  if (dot !== -1) exponent -= mantissa.length - dot - 1;
  // Loops, because a regular expression for trailing zeros is quadratic.
  let from = 0;
  let to = all.length;
  while (from < to && all[from] === '0') from++;
  while (to > from && all[to - 1] === '0') to--;
  return { negative, digits: all.slice(from, to), exponent: exponent + all.length - to };
}
