/** Numbers in a JSON text: where they end, and whether they are still the same after they went through a double. */

type Decimal = { negative: boolean; digits: string; exponent: number };

/** The offset behind the number (RFC 8259 §6) that begins at `from`, or -1 when there is none. */
export function numberEnd(text: string, from: number): number {
  const whole = text.charCodeAt(from) === 0x2d ? from + 1 : from;
  let at = digitsEnd(text, whole);
  if (at === whole || (at > whole + 1 && text.charCodeAt(whole) === 0x30)) return -1;
  if (text.charCodeAt(at) === 0x2e) {
    const fraction = at + 1;
    at = digitsEnd(text, fraction);
    if (at === fraction) return -1;
  }
  if (text.charCodeAt(at) === 0x65 || text.charCodeAt(at) === 0x45) {
    const sign = text.charCodeAt(at + 1);
    const exponent = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
    at = digitsEnd(text, exponent);
    if (at === exponent) return -1;
  }
  return at;
}

function digitsEnd(text: string, from: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code >= 0x30 && code <= 0x39) code = text.charCodeAt(++at);
  return at;
}

/**
 * `written` is a JSON number (RFC 8259 §6). True when JSON.stringify would write the parsed number with the same
 * decimal value: `1.0`, `1e2`, `-0` and `0.1` yes; `1e999`, `1e-999`, `12345678901234567890` and
 * `0.1000000000000000055` no. Linear in its length.
 */
export function isExactDecimal(written: string): boolean {
  // 15 digits without an exponent always survive (IEEE 754: a double keeps 15 decimal digits).
  if (written.length <= 15 && !/e/i.test(written)) return true;
  const parsed = Number(written);
  if (!Number.isFinite(parsed)) return false;
  const before = decimalOf(written);
  const after = decimalOf(String(parsed));
  if (before.digits === '') return after.digits === '';
  return before.digits === after.digits && before.exponent === after.exponent && before.negative === after.negative;
}

/** The value as digits × 10^exponent, the digits without zeros at either end; no digits for zero. */
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
