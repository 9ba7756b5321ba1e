/**
 * `request.query`, and the body where it is sent as a form: members that servers know under more than one name. A condition
 * reads what stands there. Where a lenient server would read something else under that name, the condition is evaluated
 * once more on that reading, and the stricter answer counts (rules.ts).
 */
import type { CelValue } from '@bufbuild/cel';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { JsonMap, type Meter, type Source, spend, toCelValue } from './condition-values.ts';
import { foldName, parameterNames } from './names.ts';

/** Everything that some server reads under one name. `from`: the name as it is written, unless there are several. */
type Reading<Value> = { values: Value[]; from: string | undefined };
type Parameters<Value> = {
  /** By name, as it is written. */
  exact: ReadonlyMap<string, readonly Value[]>;
  /** By folded name. */
  loose: ReadonlyMap<string, Reading<Value>>;
};

const REPEATED = 'the name is given more than once in the query; look at request.query_all';

/** A map whose members are read loosely where the meter says so, and that notes on the meter where it would matter. */
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

  /** What a lenient server reads under a name, where that is asked for and differs from what stands there. */
  #otherReading(key: unknown): Reading<Value> | undefined {
    if (typeof key !== 'string') return undefined;
    // Folding a name looks at each character several times.
    spend(this.#meter, 1 + key.length / 16);
    const reading = this.#loose.get(foldName(key));
    if (reading === undefined || reading.from === key) return undefined;
    if (!this.#meter.loose) this.#meter.isAmbiguous = true;
    return this.#meter.loose ? reading : undefined;
  }
}

/** `request.query` and `request.query_all`. A name that is given more than once is an error in the first of them. */
export function queryMaps(query: string, meter: Meter): { query: CelValue; query_all: CelValue } {
  const parameters = readQuery(query);
  return {
    query: new ParameterMap(parameters, single, meter) as unknown as CelValue,
    query_all: new ParameterMap(parameters, (values) => values, meter) as unknown as CelValue,
  };
}

/** `request.body` of a call whose body is sent as a form. What is nested has its names to itself. */
export function formMap(body: JsonObject, meter: Meter): CelValue {
  const exact = new Map<string, JsonValue[]>();
  const loose = new Map<string, Reading<JsonValue>>();
  for (const [name, value] of Object.entries(body)) {
    spend(meter, 2);
    exact.set(name, [value]);
    note(loose, foldName(name), value, name);
  }
  return new ParameterMap({ exact, loose }, single, meter) as unknown as CelValue;
}

function single(values: readonly JsonValue[]): Source {
  const [value, ...more] = values;
  return value === undefined || more.length > 0 ? new Error(REPEATED) : value;
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
  // Some servers take `;` for `&` (HTML 4.01, B.2.2).
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
