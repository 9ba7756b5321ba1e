/**
 * CEL's comparisons (language definition, "Equality" and "Ordering"), with the semantics of the library, except that comparing texts, lists and maps is
 * metered by how much of them is examined: the library's own comparisons cost nothing on the meter, however long the values are.
 */

import {
  type CelFunc,
  type CelList,
  type CelMap,
  CelScalar,
  type CelValue,
  celFunc,
  celMethod,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  listType,
  mapType,
} from '@bufbuild/cel';
import { isObjectInBody } from './parameters.ts';
import { known, type Truth } from './readings.ts';
import { type Meter, spend, spendText } from './values.ts';

const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
const LIST = listType(DYN);
const MAP = mapType(DYN, DYN);

/** Suffix of the names of `==`, `!=` and `in` when they compare with a boolean or number literal. */
export const TYPED = '@typed';
type Typed = '' | typeof TYPED;
/** The `in` whose condition also reads the member, so that a map is meant. */
export const IN_MEMBER = '@in@member';

/** Returns the comparison functions of one condition. `meter` returns the meter of the current evaluation. */
export function comparisonFunctions(meter: () => Meter): CelFunc[] {
  const ordered = (name: string, holds: (left: Comparable, right: Comparable) => boolean): CelFunc[] => [
    celFunc(name, [STRING, STRING], BOOL, (left, right) => {
      spendText(meter(), Math.min(left.length, right.length));
      return holds(left, right);
    }),
    // In a form all values are texts: a text in the plain form of a number is compared as a number.
    ...[INT, DOUBLE].flatMap((number) => [
      celFunc(name, [STRING, number], BOOL, (left, right) => holds(numberIn(left, meter()), right)),
      celFunc(name, [number, STRING], BOOL, (left, right) => holds(left, numberIn(right, meter()))),
    ]),
  ];
  return [
    ...(['', TYPED] as const).flatMap((typed) => equality(typed, meter)),
    ...ordered('_<_', (left, right) => left < right),
    ...ordered('_<=_', (left, right) => left <= right),
    ...ordered('_>_', (left, right) => left > right),
    ...ordered('_>=_', (left, right) => left >= right),
    celFunc(IN_MEMBER, [DYN, LIST], BOOL, (value, list) => known(isIn(value, list, meter(), ''))),
    celFunc(IN_MEMBER, [STRING, MAP], BOOL, (key, map) => isKey(key, map, meter())),
    celMethod('startsWith', STRING, [STRING], BOOL, function (start) {
      spendText(meter(), start.length);
      return this.startsWith(start);
    }),
    celMethod('endsWith', STRING, [STRING], BOOL, function (end) {
      spendText(meter(), end.length);
      return this.endsWith(end);
    }),
  ];
}

/** `==`, `!=` and `in`. */
function equality(typed: Typed, meter: () => Meter): CelFunc[] {
  return [
    celFunc(`_==_${typed}`, [DYN, DYN], BOOL, (left, right) => known(isEqual(left, right, meter(), typed))),
    celFunc(`_!=_${typed}`, [DYN, DYN], BOOL, (left, right) => !known(isEqual(left, right, meter(), typed))),
    celFunc(`@in${typed}`, [DYN, LIST], BOOL, (value, list) => known(isIn(value, list, meter(), typed))),
    ...[STRING, DOUBLE, INT, BOOL, UINT].map((type) =>
      celFunc(`@in${typed}`, [type, MAP], BOOL, (key, map) => {
        if (isObjectInBody(map)) throw new Error('the `in` is of an object, in which servers may see a list');
        return isKey(key, map, meter());
      }),
    ),
  ];
}

function isKey(key: MapKey, map: CelMap, meter: Meter): boolean {
  if (typeof key === 'string') spendText(meter, key.length);
  return map.has(key);
}

type Comparable = string | number | bigint;
type MapKey = Parameters<CelMap['has']>[0];

/** A number as JSON writes it, without an exponent and with significant digits only. */
const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/;

/** @throws Error when the text is not a number, or the body is not a form; the condition fails */
function numberIn(text: string, { isForm }: Meter): number {
  if (!isForm || !NUMBER.test(text)) throw new Error('found no matching overload for a text and a number');
  return Number(text);
}

/** Whether a text in a form is the encoding of a value that is not a text (broker/egress/credential-search/form.ts); of a number, any of its forms. */
function isWrittenAs(text: string, value: CelValue): boolean {
  if (typeof value === 'boolean') return text === String(value);
  if (value === null) return text === '';
  return isNumber(value) && NUMBER.test(text) && isSameScalar(Number(text), value);
}

function isIn(value: CelValue, list: CelList, meter: Meter, typed: Typed): Truth {
  let truth: Truth = false;
  for (const member of list) {
    const one = isEqual(member, value, meter, typed);
    if (one === true) return true;
    truth = one || truth;
  }
  return truth;
}

function isEqual(one: CelValue, other: CelValue, meter: Meter, typed: Typed): Truth {
  const [left, right] = [plain(one), plain(other)];
  if (typeof left !== typeof right && !(isNumber(left) && isNumber(right)))
    return isEqualInOtherType(left, right, meter, typed);
  if (typeof left === 'string') {
    if (typeof right !== 'string' || left.length !== right.length) return false;
    spendText(meter, left.length);
    return left === right;
  }
  if (typeof left !== 'object' || left === null || typeof right !== 'object' || right === null)
    return isSameScalar(left, right);
  if (isCelList(left) && isCelList(right)) return isEqualList(left, right, meter, typed);
  if (isCelMap(left) && isCelMap(right)) return isEqualMap(left, right, meter, typed);
  if (isCelMap(left) && isCelList(right)) return isEqualAsList(left, right, meter, typed);
  if (isCelList(left)) return isCelMap(right) && isEqualAsList(right, left, meter, typed);
  if (isCelType(left)) return isCelType(right) && left.kind === right.kind && left.name === right.name;
  return isSameTime(left, right);
}

/** Numbers are equal across their types; JavaScript's `==` compares an int with a double exactly. */
function isSameScalar(left: CelValue, right: CelValue): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: of two numbers of different types.
  return isNumber(left) && isNumber(right) ? left == right : left === right;
}

const plain = (value: CelValue): CelValue => (isCelUint(value) ? value.value : value);

/** Timestamps and durations are the only messages here. */
function isSameTime(left: object, right: object): boolean {
  if (left === right) return true;
  const [one, other] = [timeOf(left), timeOf(right)];
  if (one === undefined || other === undefined) return false;
  return one.$typeName === other.$typeName && one.seconds === other.seconds && one.nanos === other.nanos;
}

type Time = { $typeName: string; seconds: bigint; nanos: number };

function timeOf(value: object): Time | undefined {
  const { message } = value as { message?: Partial<Time> };
  return message?.seconds === undefined ? undefined : (message as Time);
}

const TRUE = /^\s*(?:true|t|yes|y|on|1)\s*$/i;
const FALSE = /^\s*(?:false|f|no|n|off|0)?\s*$/i;
const INDEX = /^\d+$/;

/** Compares two values of different types. Not 'unknown' where all servers agree: a number in a text, and in a form also a boolean. */
function isEqualInOtherType(one: CelValue, other: CelValue, meter: Meter, typed: Typed): Truth {
  const [text, value] = typeof one === 'string' ? [one, other] : [other, one];
  if (typeof text === 'string') {
    if (meter.isForm && isWrittenAs(text, value)) return true;
    if (meter.isForm && typeof value === 'boolean' && isWrittenAs(text, !value)) return false;
    if (isNumber(value) && NUMBER.test(text) && !isSameScalar(Number(text), value)) return false;
  }
  // In a form, null is sent as an empty text.
  if (!meter.isForm && (one === null || other === null)) return false;
  if (typed !== '' && (isTyped(one) || isTyped(other))) return 'unknown';
  return isReadAs(one, other, meter) || isReadAs(other, one, meter) ? 'unknown' : false;
}

const isTyped = (value: CelValue) => typeof value === 'boolean' || isNumber(value);

/**
 * Whether lenient servers treat one value as another of a different type: `"true"` and `1` as true, `"1e3"` as 1000, as binders of Rails, PHP and Jackson do;
 * a list as its member, as APIs do that accept one value or several; `{"0": …}` as a list, as PHP does.
 */
function isReadAs(written: CelValue, value: CelValue, meter: Meter): boolean {
  if (typeof written === 'object' && written !== null) {
    if (typeof value === 'object') return false;
    for (const member of membersOf(written)) if (isEqual(member, value, meter, '') !== false) return true;
    return false;
  }
  if (typeof written === 'string') spend(meter, written.length / 128);
  if (typeof value === 'boolean') {
    const text = isNumber(written) ? String(written) : written;
    return typeof text === 'string' && (value ? TRUE : FALSE).test(text);
  }
  if (typeof written !== 'string' || !isNumber(value)) return false;
  return written.trim() !== '' && isSameScalar(Number(written), value);
}

/** Returns the members of a list, or of a map that PHP would read as a list. */
function membersOf(value: CelValue): Iterable<CelValue> {
  if (isCelList(value)) return value;
  if (!isCelMap(value)) return [];
  for (const key of value.keys()) if (typeof key !== 'string' || !INDEX.test(key)) return [];
  return value.values();
}

/** Compares a map with a list. 'unknown' when a server that reads the map as a list may find them equal. */
function isEqualAsList(map: CelMap, list: CelList, meter: Meter, typed: Typed): Truth {
  if (map.size !== list.size) return false;
  let at = 0;
  for (const member of membersOf(map)) {
    const other = list.get(at++);
    if (other === undefined || isEqual(member, other, meter, typed) === false) return false;
  }
  return at > 0 && 'unknown';
}

function isEqualList(left: CelList, right: CelList, meter: Meter, typed: Typed): Truth {
  const { size } = left;
  if (size !== right.size) return false;
  let truth: Truth = true;
  for (let i = 0; i < size; i++) {
    spend(meter, 1);
    const one = left.get(i);
    const other = right.get(i);
    const isSame = one !== undefined && other !== undefined && isEqual(one, other, meter, typed);
    if (isSame === false) return false;
    if (isSame === 'unknown') truth = isSame;
  }
  return truth;
}

function isEqualMap(left: CelMap, right: CelMap, meter: Meter, typed: Typed): Truth {
  if (left.size !== right.size) return false;
  let truth: Truth = true;
  for (const [key, value] of left) {
    if (typeof key === 'string') spendText(meter, key.length);
    const other = right.get(key);
    const isSame = other !== undefined && isEqual(value, other, meter, typed);
    if (isSame === false) return false;
    if (isSame === 'unknown') truth = isSame;
  }
  return truth;
}

const isNumber = (value: CelValue): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';
