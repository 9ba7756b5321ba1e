/**
 * CEL's comparisons (language definition, "Equality" and "Ordering"), as the library has them, with texts, lists and maps
 * paid for by what is looked at of them: the library's own are free, however long the texts are.
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
import { isObjectInBody } from './condition-parameters.ts';
import { known, type Truth } from './condition-readings.ts';
import { type Meter, spend, spendText } from './condition-values.ts';

const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
const LIST = listType(DYN);
const MAP = mapType(DYN, DYN);

/** `in`, of a map by who reads the member as well. */
export const IN_MEMBER = '@in@member';

/** The comparisons of one condition. `meter` gives the meter of the evaluation that is running. */
export function comparisonFunctions(meter: () => Meter): CelFunc[] {
  const ordered = (name: string, holds: (left: Comparable, right: Comparable) => boolean): CelFunc[] => [
    celFunc(name, [STRING, STRING], BOOL, (left, right) => {
      spendText(meter(), Math.min(left.length, right.length));
      return holds(left, right);
    }),
    // In a form all values are texts: one that is plainly a number is compared as such.
    ...[INT, DOUBLE].flatMap((number) => [
      celFunc(name, [STRING, number], BOOL, (left, right) => holds(numberIn(left, meter()), right)),
      celFunc(name, [number, STRING], BOOL, (left, right) => holds(left, numberIn(right, meter()))),
    ]),
  ];
  return [
    celFunc('_==_', [DYN, DYN], BOOL, (left, right) => known(isEqual(left, right, meter()))),
    celFunc('_!=_', [DYN, DYN], BOOL, (left, right) => !known(isEqual(left, right, meter()))),
    ...ordered('_<_', (left, right) => left < right),
    ...ordered('_<=_', (left, right) => left <= right),
    ...ordered('_>_', (left, right) => left > right),
    ...ordered('_>=_', (left, right) => left >= right),
    celFunc('@in', [DYN, LIST], BOOL, (value, list) => known(isIn(value, list, meter()))),
    ...[STRING, DOUBLE, INT, BOOL, UINT].map((type) =>
      celFunc('@in', [type, MAP], BOOL, (key, map) => {
        if (isObjectInBody(map)) throw new Error('the `in` is of an object, in which servers may see a list');
        return isKey(key, map, meter());
      }),
    ),
    celFunc(IN_MEMBER, [DYN, LIST], BOOL, (value, list) => known(isIn(value, list, meter()))),
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

function isKey(key: MapKey, map: CelMap, meter: Meter): boolean {
  if (typeof key === 'string') spendText(meter, key.length);
  return map.has(key);
}

type MapKey = Parameters<CelMap['has']>[0];
type Comparable = string | number | bigint;

/** As JSON writes a number, without an exponent and with digits that all count. */
const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/;

/** @throws Error when it is none, or is not of a form: the condition fails */
function numberIn(text: string, { isForm }: Meter): number {
  if (!isForm || !NUMBER.test(text)) throw new Error('found no matching overload for a text and a number');
  return Number(text);
}

/** Whether a text of a form is what is written there for a value that is no text (broker/egress/form.ts); a number in any of its forms. */
function isWrittenAs(text: string, value: CelValue): boolean {
  if (typeof value === 'boolean') return text === String(value);
  if (value === null) return text === '';
  return isNumber(value) && NUMBER.test(text) && isSameScalar(Number(text), value);
}

function isIn(value: CelValue, list: CelList, meter: Meter): Truth {
  let truth: Truth = false;
  for (const member of list) {
    const one = isEqual(member, value, meter);
    if (one === true) return true;
    truth = one || truth;
  }
  return truth;
}

function isEqual(left: CelValue, right: CelValue, meter: Meter): Truth {
  if (typeof left !== typeof right) {
    if (meter.isForm && typeof left === 'string' && isWrittenAs(left, right)) return true;
    if (meter.isForm && typeof right === 'string' && isWrittenAs(right, left)) return true;
    if (isReadAs(left, right, meter) || isReadAs(right, left, meter)) return 'unknown';
  }
  if (typeof left === 'string') {
    if (typeof right !== 'string' || left.length !== right.length) return false;
    spendText(meter, left.length);
    return left === right;
  }
  if (typeof left !== 'object' || left === null || typeof right !== 'object' || right === null)
    return isSameScalar(left, right);
  if (isCelList(left)) return isCelList(right) && isEqualList(left, right, meter);
  if (isCelMap(left)) return isCelMap(right) && isEqualMap(left, right, meter);
  if (isCelType(left)) return isCelType(right) && left.kind === right.kind && left.name === right.name;
  return isUint(left) || isUint(right) ? isSameScalar(left, right) : isSameTime(left, right);
}

/** Numbers are equal across their types; JavaScript's `==` compares an int with a double exactly. */
function isSameScalar(left: CelValue, right: CelValue): boolean {
  const [one, other] = [plain(left), plain(right)];
  const areNumbers =
    (typeof one === 'number' || typeof one === 'bigint') && (typeof other === 'number' || typeof other === 'bigint');
  // biome-ignore lint/suspicious/noDoubleEquals: of two numbers of different types.
  return areNumbers ? one == other : one === other;
}

const isUint = (value: CelValue) => isCelUint(value);

const plain = (value: CelValue) => (isCelUint(value) ? value.value : value);

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
/** Longer texts are no numbers, and longer lists no single values. */
const MOST_READ = 40;

/**
 * Whether lenient servers take one value for another of another type: `"true"` and `1` for true, `"1e3"` for 1000, as binders of Rails, PHP
 * and Jackson do; a list for its member, as APIs do that take one or several.
 */
function isReadAs(written: CelValue, value: CelValue, meter: Meter): boolean {
  if (isCelList(written)) {
    if (typeof value === 'object' || written.size > MOST_READ) return false;
    for (const member of written) if (isEqual(member, value, meter)) return true;
    return false;
  }
  if (typeof value === 'boolean') {
    const text = isNumber(written) ? String(written) : written;
    return typeof text === 'string' && text.length <= MOST_READ && (value ? TRUE : FALSE).test(text);
  }
  if (typeof written !== 'string' || !isNumber(value)) return false;
  return written.length <= MOST_READ && written.trim() !== '' && isSameScalar(Number(written), value);
}

function isEqualList(left: CelList, right: CelList, meter: Meter): Truth {
  const { size } = left;
  if (size !== right.size) return false;
  let truth: Truth = true;
  for (let i = 0; i < size; i++) {
    spend(meter, 1);
    const one = left.get(i);
    const other = right.get(i);
    const isSame = one !== undefined && other !== undefined && isEqual(one, other, meter);
    if (isSame === false) return false;
    if (isSame === 'unknown') truth = isSame;
  }
  return truth;
}

function isEqualMap(left: CelMap, right: CelMap, meter: Meter): Truth {
  if (left.size !== right.size) return false;
  let truth: Truth = true;
  for (const [key, value] of left) {
    if (typeof key === 'string') spendText(meter, key.length);
    const other = right.get(key);
    const isSame = other !== undefined && isEqual(value, other, meter);
    if (isSame === false) return false;
    if (isSame === 'unknown') truth = isSame;
  }
  return truth;
}

const isNumber = (value: CelValue): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';
