/**
 * Converts JSON to CEL values (language definition, "JSON Data Conversion", with integral numbers as ints). Values are wrapped lazily, when a condition reads
 * them: a body is converted only as far as needed. Every read is counted on a meter, because no CEL engine bounds cost by itself (hostile cases DOS-06 and
 * DOS-07).
 */

import { type CelList, type CelMap, type CelValue, celError, isCelError, isCelList, isCelMap } from '@bufbuild/cel';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { Readings } from './readings.ts';

/**
 * The state of one evaluation. `left`: the steps that it may still spend (a step is about a fifth of a microsecond); `leftOfCall`: the steps left for all
 * conditions of its call; `readings`: which names it reads as lenient servers do; `named`: the text literals of the condition by their folded names;
 * `isForm`: whether the body is a form, where a number is a text.
 */
export type Meter = {
  left: number;
  leftOfCall: number;
  named: ReadonlyMap<string, readonly string[]>;
  readonly readings: Readings;
  readonly isForm: boolean;
};

const NONE: Meter['named'] = new Map();

export function newMeter(isForm = false): Meter {
  return { left: EVALUATION_STEPS, leftOfCall: CALL_STEPS, named: NONE, readings: new Readings(), isForm };
}

/** Enough for a loop over some thousand members; used up in about 10 ms. */
export const EVALUATION_STEPS = 50_000;

/** Shared by all conditions of a call, so that a call with many rules delays others little longer than one with a single rule. */
const CALL_STEPS = 3 * EVALUATION_STEPS;

/** Spends `steps`. @throws Error when fewer are left, which makes the condition fail. */
export function spend(meter: Meter, steps: number): void {
  meter.left -= steps;
  if (meter.left < 0) throw new Error('the condition costs too much on this call');
}

/** Spends the steps for examining `length` characters of a text. @throws as `spend` */
export function spendText(meter: Meter, length: number): void {
  spend(meter, length / 512);
}

/** The values of a condition's variables: JSON, ready CEL values, and errors that fail the condition when they are read. */
export type Source = JsonValue | CelValue | Error | { readonly [name: string]: Member } | readonly Source[];

/**
 * A lazily computed member is a function, not a getter: a getter in an object literal gives every object a hidden class of its own, and each hidden class
 * keeps the whole call in memory until the next full collection.
 */
type Member = Source | (() => Source);

// The library recognises its own maps and lists by these registered symbols. These classes add what `celMap(new Map())` lacks: lazy members, and a `has` that
// is true for a member that is null.
const MAP: unique symbol = Symbol.for('@bufbuild/cel/map') as never;
const LIST: unique symbol = Symbol.for('@bufbuild/cel/list') as never;

/** Converts one value to CEL. Integers beyond 2^53 stay doubles, because they may have been rounded already. */
export function toCelValue(source: Source, meter: Meter): CelValue {
  if (typeof source === 'number') return Number.isSafeInteger(source) ? BigInt(source) : source;
  if (typeof source !== 'object' || source === null) return source as CelValue;
  if (Array.isArray(source)) return new JsonList(source, meter) as unknown as CelList;
  if (isCelMap(source) || isCelList(source)) return source;
  if (source instanceof Error) return celError(source) as unknown as CelValue;
  return new JsonMap(source as JsonObject, meter) as unknown as CelMap;
}

/** A JSON object as a CEL map. Only own members are visible, so `__proto__` and `constructor` are ordinary names. */
export class JsonMap {
  readonly [MAP] = {};
  readonly #source: Record<string, Member>;
  readonly #meter: Meter;

  constructor(source: Record<string, Member>, meter: Meter) {
    this.#source = source;
    this.#meter = meter;
  }

  get size(): number {
    const { length } = Object.keys(this.#source);
    // Counting the keys means listing them, which is expensive for many keys.
    spend(this.#meter, length);
    return length;
  }

  get(key: unknown): CelValue | undefined {
    spend(this.#meter, 1);
    if (typeof key !== 'string') return undefined;
    spendText(this.#meter, key.length);
    if (!Object.hasOwn(this.#source, key)) return undefined;
    const member = this.#source[key];
    if (member === undefined) return undefined;
    return toCelValue(typeof member === 'function' ? member() : member, this.#meter);
  }

  has(key: unknown): boolean {
    return typeof key === 'string' && Object.hasOwn(this.#source, key);
  }

  keys(): Generator<string> {
    return this.#names();
  }

  *#names(): Generator<string> {
    for (const key of Object.keys(this.#source)) {
      spend(this.#meter, 1);
      yield key;
    }
  }

  *values(): Generator<CelValue> {
    for (const [, value] of this.entries()) yield value;
  }

  *entries(): Generator<[string, CelValue]> {
    for (const key of this.#names()) {
      const value = this.get(key);
      if (value !== undefined) yield [key, value];
    }
  }

  [Symbol.iterator](): Generator<[string, CelValue]> {
    return this.entries();
  }

  forEach(callback: (value: CelValue, key: string, map: JsonMap) => void): void {
    for (const [key, value] of this.entries()) callback(value, key, this);
  }
}

/** A JSON array as a CEL list. */
export class JsonList {
  readonly [LIST] = {};
  readonly #source: readonly Source[];
  readonly #meter: Meter;
  readonly #toValue: (item: Source, meter: Meter) => CelValue | undefined;

  /** @param toValue converts an item to CEL when it is read */
  constructor(
    source: readonly Source[],
    meter: Meter,
    toValue: (item: Source, meter: Meter) => CelValue | undefined = toCelValue,
  ) {
    this.#source = source;
    this.#meter = meter;
    this.#toValue = toValue;
  }

  get size(): number {
    return this.#source.length;
  }

  get(index: number): CelValue | undefined {
    spend(this.#meter, 1);
    const item = this.#source[index];
    return item === undefined ? undefined : this.#toValue(item, this.#meter);
  }

  *values(): Generator<CelValue> {
    for (let i = 0; i < this.#source.length; i++) {
      const item = this.get(i);
      if (item !== undefined) yield item;
    }
  }

  [Symbol.iterator](): Generator<CelValue> {
    return this.values();
  }
}

/**
 * The concatenation of two lists. `map` and `filter` append one member at a time; appending to the newest view of a list
 * shares its array, so that a loop of n costs n and not n².
 */
export class GrowingList {
  readonly [LIST] = {};
  readonly #items: CelValue[];
  readonly size: number;
  readonly #meter: Meter;

  private constructor(items: CelValue[], meter: Meter) {
    this.#items = items;
    this.size = items.length;
    this.#meter = meter;
  }

  /** @throws Error when the result is longer than the meter allows. */
  static concat(left: CelList, right: CelList, meter: Meter): GrowingList {
    const grows = left instanceof GrowingList && left.size === left.#items.length;
    const items = grows ? left.#items : [];
    if (!grows) for (const item of left) append(items, item, meter);
    for (const item of right === left ? [...right] : right) append(items, item, meter);
    return new GrowingList(items, meter);
  }

  get(index: number): CelValue | undefined {
    spend(this.#meter, 1);
    return index >= 0 && index < this.size ? this.#items[index] : undefined;
  }

  *values(): Generator<CelValue> {
    for (let i = 0; i < this.size; i++) {
      const item = this.get(i);
      if (item !== undefined) yield item;
    }
  }

  [Symbol.iterator](): Generator<CelValue> {
    return this.values();
  }
}

function append(items: CelValue[], item: CelValue, meter: Meter): void {
  spend(meter, 1);
  if (isCelError(item)) throw item;
  items.push(item);
}
