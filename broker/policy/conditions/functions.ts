/**
 * CEL's standard functions, where the library's own cost too much, use the process's time zone, or accept what CEL refuses (`int("")`). Each has the
 * signature of the language definition; in the library, a later function replaces an earlier one of the same signature.
 */

import {
  type CelFunc,
  type CelList,
  CelScalar,
  celFunc,
  celMethod,
  celUint,
  isCelList,
  isCelMap,
  listType,
  objectType,
} from '@bufbuild/cel';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { RE2JS } from '@bufbuild/re2';
import { present } from '../../runtime/present.ts';
import { comparisonFunctions } from './comparisons.ts';
import { isObjectInBody } from './parameters.ts';
import { GrowingList, type Meter, spend } from './values.ts';

const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
const LIST = listType(DYN);
const TIMESTAMP = objectType('google.protobuf.Timestamp');

/** The name of the function that syntax.ts puts around the range of every loop. No source can name it. */
export const RANGE = '@range';

const MAX_STRING = 1 << 20;
const MAX_NEEDLE = 256;
const MAX_REGEX_LENGTH = 512;
const MAX_REGEX_INSTRUCTIONS = 2000;
/** Cost of converting a time to a named time zone with the platform's calendar. */
const ZONE_STEPS = 15;

/** The compiled literals of one condition. */
export type Literals = {
  regexes: Map<string, RE2JS>;
  zones: Map<string, Intl.DateTimeFormat>;
  /** All text literals. */
  texts: Set<string>;
};

/** Compiles the pattern of a `matches`. @throws Error with a message for a person. */
export function compileRegex(pattern: string): RE2JS {
  if (pattern.length > MAX_REGEX_LENGTH)
    throw new Error(`a regular expression has at most ${MAX_REGEX_LENGTH} characters`);
  const regex = RE2JS.compile(pattern);
  if (regex.re2().prog.numInst() > MAX_REGEX_INSTRUCTIONS) throw new Error('the regular expression repeats too much');
  return regex;
}

/** An IANA zone as a formatter, or undefined for a fixed offset (`+02:00`). @throws Error for an unknown zone. */
export function compileZone(zone: string): Intl.DateTimeFormat | undefined {
  if (fixedOffset(zone) !== undefined) return undefined;
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    throw new Error(
      `"${zone}" is no time zone; write an IANA name such as "Europe/Berlin", or an offset such as "+02:00"`,
    );
  }
}

/** Returns the functions of one condition. `meter` returns the meter of the current evaluation. */
export function conditionFunctions(literals: Literals, meter: () => Meter): CelFunc[] {
  return [
    ...comparisonFunctions(meter),
    celFunc(RANGE, [DYN, INT], DYN, (range, nodes) => {
      if (isObjectInBody(range)) throw new Error('the loop iterates over an object, which servers may read as a list');
      if (isCelList(range) || isCelMap(range)) spend(meter(), range.size * Number(nodes));
      return range;
    }),
    celFunc('_+_', [STRING, STRING], STRING, (left, right) => {
      if (left.length + right.length > MAX_STRING) throw new Error('a string grows too long');
      spend(meter(), (left.length + right.length) / 256);
      return left + right;
    }),
    celFunc('_+_', [LIST, LIST], LIST, (left, right) => GrowingList.concat(left, right, meter()) as unknown as CelList),
    celFunc('size', [STRING], INT, (text) => codePoints(text, meter())),
    celMethod('size', STRING, [], INT, function () {
      return codePoints(this, meter());
    }),
    celMethod('contains', STRING, [STRING], BOOL, function (needle) {
      if (needle.length > MAX_NEEDLE) throw new Error(`\`contains\` looks for at most ${MAX_NEEDLE} characters`);
      // In the worst case, where the searched text may begin at every character, the search takes some 25 ns per character.
      spend(meter(), this.length / (needle.length === 1 ? 512 : 16));
      return this.includes(needle);
    }),
    celMethod('matches', STRING, [STRING], BOOL, function (pattern) {
      const regex = present(literals.regexes.get(pattern), 'compiled pattern');
      spend(meter(), (this.length * regex.re2().prog.numInst()) / 20);
      return regex.test(this);
    }),
    celFunc('int', [STRING], INT, (text) => integer(text, /^-?[0-9]{1,19}$/, -(2n ** 63n), 2n ** 63n - 1n)),
    celFunc('uint', [STRING], UINT, (text) => celUint(integer(text, /^[0-9]{1,20}$/, 0n, 2n ** 64n - 1n))),
    celFunc('double', [STRING], DOUBLE, double),
    celFunc('timestamp', [INT], TIMESTAMP, (seconds) => timestampFromMs(Number(seconds) * 1000)),
    ...TIME_PARTS.flatMap(([name, part]) => [
      celMethod(name, TIMESTAMP, [], INT, function () {
        return BigInt(part(new Date(milliseconds(this.message as Timestamp))));
      }),
      celMethod(name, TIMESTAMP, [STRING], INT, function (zone) {
        spend(meter(), literals.zones.has(zone) ? ZONE_STEPS : 1);
        return BigInt(part(wallClock(milliseconds(this.message as Timestamp), zone, literals.zones)));
      }),
    ]),
  ];
}

/** The accessors of CEL's timestamps, on a date whose UTC fields are the wall clock. */
const TIME_PARTS: readonly (readonly [string, (date: Date) => number])[] = [
  ['getFullYear', (date) => date.getUTCFullYear()],
  ['getMonth', (date) => date.getUTCMonth()],
  ['getDate', (date) => date.getUTCDate()],
  ['getDayOfMonth', (date) => date.getUTCDate() - 1],
  ['getDayOfWeek', (date) => date.getUTCDay()],
  ['getDayOfYear', (date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000)],
  ['getHours', (date) => date.getUTCHours()],
  ['getMinutes', (date) => date.getUTCMinutes()],
  ['getSeconds', (date) => date.getUTCSeconds()],
  ['getMilliseconds', (date) => date.getUTCMilliseconds()],
];

const SURROGATE = /[\ud800-\udfff]/;

function codePoints(text: string, meter: Meter): bigint {
  spend(meter, text.length / 128);
  // The loop takes ten times as long before it is optimized by V8, and most texts have no surrogates.
  if (!SURROGATE.test(text)) return BigInt(text.length);
  spend(meter, text.length / 64);
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    const low = text.charCodeAt(i) & 0xfc00;
    if (low === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  }
  return BigInt(count);
}

function integer(text: string, form: RegExp, least: bigint, most: bigint): bigint {
  const value = form.test(text) ? BigInt(text) : undefined;
  if (value === undefined || value < least || value > most) throw new Error('the text is not a whole number in range');
  return value;
}

function double(text: string): number {
  if (text.length > 64 || !/^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) {
    throw new Error('the text is not a number');
  }
  return Number(text);
}

function milliseconds(timestamp: Timestamp): number {
  return Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1_000_000);
}

/** Returns a date whose UTC fields are the local time in that zone. */
function wallClock(instant: number, zone: string, zones: Literals['zones']): Date {
  const offset = fixedOffset(zone);
  if (offset !== undefined) return new Date(instant + offset);
  const parts = { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0 };
  for (const { type, value } of present(zones.get(zone), 'compiled time zone').formatToParts(instant))
    if (type in parts) parts[type as keyof typeof parts] = Number(value);
  const { year, month, day, hour, minute, second } = parts;
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second, ((instant % 1000) + 1000) % 1000));
}

/** Returns milliseconds east of UTC, for `UTC`, `+hh:mm`, `-hh:mm` and `hh:mm`; undefined for any other zone. */
function fixedOffset(zone: string): number | undefined {
  if (zone === 'UTC') return 0;
  const [, sign, hours, minutes] = /^([+-]?)([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(zone) ?? [];
  if (hours === undefined) return undefined;
  return (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
}
