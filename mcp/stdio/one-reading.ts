/**
 * What in a line of JSON would leave this process as something else: a number that a double does not hold, a member name that
 * is there twice. The broker refuses both in what it reads itself; here the line is parsed and written anew before it gets
 * there, so that nobody after this would see what the model had asked for.
 */

/** A place as it is written in the text, and what is wrong there. */
export type Misread = { place: readonly (string | number)[]; reason: string };

type Level = { names: Set<string> | undefined; place: string | number };

const MOST_SHOWN = 40;
/** What the broker takes in a call, below the message and its `params`. Deeper than the stack is, nothing could be compared. */
const MOST_LEVELS = 64 + 2;
/** Where the SDK leaves a member `__proto__` out without an error. */
const ARGUMENTS = ['params', 'arguments'];

/** The first of it in `text`, which JSON.parse has taken; undefined when there is none. */
export function misreadIn(text: string): Misread | undefined {
  const levels: Level[] = [];
  const placed = (reason: string): Misread => ({ place: levels.map(({ place }) => place), reason });
  let isName = false;
  for (let at = 0; at < text.length; ) {
    const code = text[at]!;
    const level = levels.at(-1);
    if (code === '"') {
      const end = stringEnd(text, at);
      if (isName && level?.names) {
        const name = JSON.parse(text.slice(at, end)) as string;
        level.place = name;
        if (level.names.has(name)) return placed('this member is there twice: write it once');
        if (name === '__proto__' && isIn(levels, ARGUMENTS)) return placed('there is no such argument');
        level.names.add(name);
        isName = false;
      }
      at = end;
      continue;
    }
    if (code === '-' || (code >= '0' && code <= '9')) {
      const end = numberEnd(text, at);
      const written = text.slice(at, end);
      if (!isExactNumber(written)) {
        const shown = written.length > MOST_SHOWN ? `${written.slice(0, MOST_SHOWN)}…` : written;
        return placed(`write it as text, because the number ${shown} would be sent as another number`);
      }
      at = end;
      continue;
    }
    if (code === '{' || code === '[') {
      isName = code === '{';
      if (levels.length === MOST_LEVELS) return placed('this is more levels deep than a call may be');
      levels.push(isName ? { names: new Set(), place: '' } : { names: undefined, place: 0 });
    } else if (code === '}' || code === ']') levels.pop();
    else if (code === ',' && level) {
      isName = level.names !== undefined;
      if (!isName) (level.place as number)++;
    }
    at++;
  }
  return undefined;
}

/** Whether the level that is read last is the one at this place. */
const isIn = (levels: readonly Level[], place: readonly string[]): boolean =>
  levels.length === place.length + 1 && place.every((name, at) => levels[at]!.place === name);

function stringEnd(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const code = text[at];
    if (code === '\\') at++;
    else if (code === '"') return at + 1;
  }
}

function numberEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && '+-.0123456789Ee'.includes(text[at]!)) at++;
  return at;
}

/** Whether JSON.stringify would write the parsed number with the same decimal value: `1.0` and `1e2` yes, `1e999` no. */
function isExactNumber(written: string): boolean {
  // IEEE 754: a double keeps 15 decimal digits.
  if (written.length <= 15 && !/e/i.test(written)) return true;
  const parsed = Number(written);
  return Number.isFinite(parsed) && decimalOf(written) === decimalOf(String(parsed));
}

/** One text for one value: sign, digits without zeros at either end, exponent. */
function decimalOf(written: string): string {
  const [mantissa = '', power = '0'] = written.replace('-', (sign, at) => (at === 0 ? '' : sign)).split(/e/i);
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  let from = 0;
  let to = digits.length;
  // Loops, because a regular expression for trailing zeros is quadratic.
  while (from < to && digits[from] === '0') from++;
  while (to > from && digits[to - 1] === '0') to--;
  if (from === to) return '0';
  const sign = written.startsWith('-') ? '-' : '';
  return `${sign}${digits.slice(from, to)}e${Number(power) - fraction.length + digits.length - to}`;
}
