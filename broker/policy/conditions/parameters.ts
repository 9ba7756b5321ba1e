/**
 * `request.query` and `request.body`: members that servers find under more than one name. A condition reads the member with the exact name. Where a lenient
 * server would read another member under that name, the condition is evaluated for that reading, too (readings.ts), and the strictest result counts
 * (rules/selection.ts).
 */
import type { CelValue } from '@bufbuild/cel';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { foldName, isFolded, parameterNames } from '../names.ts';
import { JsonList, JsonMap, type Meter, type Source, spend, toCelValue } from './values.ts';

/** The members of a body, or of an object in a body. An error: the value cannot be known. */
export type BodyMembers = Readonly<Record<string, JsonValue | Error>>;

/** All values that some server reads under one name. `from`: the name as it is written; undefined when several spellings are present. */
type Reading<Value> = { values: Value[]; from: string | undefined };
type Parameters<Value> = {
  /** By exact name. */
  exact: ReadonlyMap<string, readonly Value[]>;
  /** By folded name. */
  loose: ReadonlyMap<string, Reading<Value>>;
};

const REPEATED = 'the name is given more than once in the query; use request.query_all';
const SPELLED_TWICE = 'the name is given more than once, in another spelling or in the query, too';

/** A map whose members are read strictly or leniently, as the current reading of the meter decides. */
class ParameterMap<Value extends JsonValue> extends JsonMap {
  readonly #loose: ReadonlyMap<string, Reading<Value>>;
  readonly #readAs: (values: readonly Value[]) => Source;
  readonly #meter: Meter;

  constructor({ exact, loose }: Parameters<Value>, readAs: (values: readonly Value[]) => Source, meter: Meter) {
    super(Object.fromEntries(Array.from(exact, ([name, values]) => [name, readAs(values)])), meter);
    this.#loose = loose;
    this.#readAs = readAs;
    this.#meter = meter;
  }

  override get(key: unknown): CelValue | undefined {
    const reading = this.#otherReading(key);
    return reading === undefined ? super.get(key) : toCelValue(this.#readAs(reading.values), this.#meter);
  }

  override has(key: unknown): boolean {
    return this.#otherReading(key) !== undefined || super.has(key);
  }

  /** Returns what a lenient server reads under a name, when the current reading is lenient and the result differs from the exact member. */
  #otherReading(key: unknown): Reading<Value> | undefined {
    if (typeof key !== 'string') return undefined;
    // Folding a name examines each character several times.
    spend(this.#meter, 1 + key.length / 16);
    const reading = this.#loose.get(foldName(key));
    if (reading === undefined || reading.from === key) return undefined;
    // `query` and `query_all` share one place, so that both are read in the same way.
    return this.#meter.readings.isLenient(`query.${key}`) ? reading : undefined;
  }
}

/** Returns `request.query` and `request.query_all`. A name that occurs more than once is an error in the former. */
export function queryMaps(query: string, meter: Meter): { query: CelValue; query_all: CelValue } {
  const parameters = readQuery(query);
  return {
    query: new ParameterMap(parameters, (values) => single(values), meter) as unknown as CelValue,
    query_all: new ParameterMap(parameters, (values) => values, meter) as unknown as CelValue,
  };
}

/**
 * Returns `request.body`. Binders of JSON ignore letter case (ASP.NET Core, Go) or accept `email_address` for `emailAddress` (proto3), at every depth; those
 * of forms do more. Members of the query count as members of the body, too, as many platforms merge both.
 *
 * @param query of a call that has a body; empty otherwise
 */
export const bodyMap = (body: BodyMembers, query: string, meter: Meter): CelValue =>
  new BodyMap(body, query, WHOLE, meter) as unknown as CelValue;

/** The path of the whole body. */
const WHOLE = 'body';

/** Whether a value is an object inside a body, and not the body itself. */
export const isObjectInBody = (value: unknown): boolean => value instanceof BodyMap && !value.isWhole;

/** The body or an object inside it. Its names are folded when a condition first reads a member. */
class BodyMap extends JsonMap {
  readonly #body: BodyMembers;
  readonly #query: string;
  /** The names that lead to the object. The members of a list are read by the same reader, so they share one path. */
  readonly #path: string;
  readonly #meter: Meter;
  #loose: ReadonlyMap<string, Reading<JsonValue | Error>> | undefined;

  constructor(body: BodyMembers, query: string, path: string, meter: Meter) {
    super(body, meter);
    this.#body = body;
    this.#query = query;
    this.#path = path;
    this.#meter = meter;
  }

  override get(key: unknown): CelValue | undefined {
    const reading = this.#otherReading(key);
    if (typeof key !== 'string' || (reading === undefined && !Object.hasOwn(this.#body, key))) return super.get(key);
    spend(this.#meter, 1 + key.length / 512);
    const value = reading === undefined ? this.#body[key] : single(reading.values, SPELLED_TWICE);
    return typeof value === 'object'
      ? bodyValue(value, memberPath(this.#path, key), this.#meter)
      : bodyValue(value, '', this.#meter);
  }

  override has(key: unknown): boolean {
    return this.#otherReading(key) !== undefined || super.has(key);
  }

  /** Returns what a lenient server reads under a name, when the current reading is lenient and the result differs from the exact member. */
  #otherReading(key: unknown): Reading<JsonValue | Error> | undefined {
    if (typeof key !== 'string') return undefined;
    spend(this.#meter, 1 + key.length / 16);
    const reading = this.#readings().get(foldName(key));
    if (reading === undefined || reading.from === key) return undefined;
    return this.#meter.readings.isLenient(memberPath(this.#path, key)) ? reading : undefined;
  }

  get isWhole(): boolean {
    return this.#path === WHOLE;
  }

  /** For loops: also yields the names that a lenient server reads, spelled as the condition spells them. */
  override *keys(): Generator<string> {
    yield* super.keys();
    const { named, readings } = this.#meter;
    for (const [folded, { from }] of this.#readings()) {
      const spelled = named.get(folded);
      const others = (spelled ?? [folded]).filter((name) => name !== from && !Object.hasOwn(this.#body, name));
      if (others.length === 0) continue;
      // Names that the condition does not spell share one place: the condition cannot distinguish them.
      if (readings.isLenient(`keys.${this.#path}${spelled ? `.${folded}` : ''}`)) yield* others;
    }
  }

  #readings(): ReadonlyMap<string, Reading<JsonValue | Error>> {
    if (this.#loose !== undefined) return this.#loose;
    const loose = new Map<string, Reading<JsonValue | Error>>();
    for (const name of Object.keys(this.#body)) {
      // Folding a name that is folded already costs little.
      spend(this.#meter, isFolded(name) ? 0.5 : 2);
      note(loose, foldName(name), this.#body[name] as JsonValue | Error, name);
    }
    if (this.#query !== '')
      for (const [name, { values }] of readQuery(this.#query).loose)
        for (const value of values) note(loose, name, value, undefined);
    this.#loose = loose;
    return loose;
  }
}

/** Converts a value in a body to CEL: objects in it are read with the same leniency as the body. */
function bodyValue(value: Source | undefined, path: string, meter: Meter): CelValue | undefined {
  if (typeof value !== 'object' || value === null || value instanceof Error)
    return value === undefined ? undefined : toCelValue(value, meter);
  if (!Array.isArray(value)) return new BodyMap(value as JsonObject, '', path, meter) as unknown as CelValue;
  return new JsonList(value, meter, (item) => bodyValue(item, path, meter)) as unknown as CelValue;
}

/** Includes the length of the name, so that no two paths have the same text. */
const memberPath = (path: string, name: string) => `${path}.${name.length}:${name}`;

function single(values: readonly (JsonValue | Error)[], repeated = REPEATED): Source {
  const [value, ...more] = values;
  return value === undefined || more.length > 0 ? new Error(repeated) : value;
}

function readQuery(query: string): Parameters<string> {
  const exact = new Map<string, string[]>();
  const loose = new Map<string, Reading<string>>();
  for (const [name, value] of new URLSearchParams(query)) {
    const values = exact.get(name);
    if (values === undefined) exact.set(name, [value]);
    else values.push(value);
    noteAll(loose, name, value, name);
  }
  // Some servers treat `;` as `&` (HTML 4.01, B.2.2).
  if (query.includes(';')) {
    const known = new Set(Array.from(new URLSearchParams(query), (pair) => JSON.stringify(pair)));
    for (const pair of new URLSearchParams(query.replaceAll(';', '&')))
      if (!known.has(JSON.stringify(pair))) noteAll(loose, ...pair, undefined);
  }
  return { exact, loose };
}

function noteAll(loose: Map<string, Reading<string>>, name: string, value: string, from: string | undefined): void {
  for (const one of new Set([...parameterNames(name), foldName(name)])) note(loose, one, value, from);
}

function note<Value>(loose: Map<string, Reading<Value>>, name: string, value: Value, from: string | undefined): void {
  const reading = loose.get(name);
  if (reading === undefined) {
    loose.set(name, { values: [value], from });
    return;
  }
  reading.values.push(value);
  if (reading.from !== from) reading.from = undefined;
}
