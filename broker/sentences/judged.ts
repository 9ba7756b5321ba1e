/** The input of a sentence: a call as it was decided, or its path alone. */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { readMessageSubject } from '../policy/addresses.ts';
import { foldName } from '../policy/names.ts';
import { type MinorUnits, readAmount } from './money.ts';
import { counted, shown } from './readable.ts';
import type { Place } from './template.ts';

/** `body`: for a GraphQL call or a tool, its arguments. */
export type Request = {
  query: readonly (readonly [string, string])[];
  body: JsonObject;
  /** The recipients of the call, and the members that name them. Computed when a sentence mentions them. */
  recipients(): { texts: readonly string[]; names: readonly (readonly string[])[] };
};

/** `parameters`: the text that matches each `*` of the operation's path. `request`: undefined when only the path is known. */
export type Judged = {
  parameters: readonly string[];
  rest: string;
  request: Request | undefined;
  minorUnits: MinorUnits;
};

/** The members of the body, and the query parameter, that a value was read from. */
type Used = { names?: readonly (readonly string[])[]; parameter?: string };

/** The value at a place: texts of the request, or `said`, a description by the broker for anything other than a text. */
export type Found = Used &
  ({ texts: readonly string[]; more: number; note?: string; isAmount?: true } | { said: string });

/** Returns the value at a place. `unknown`: only the path is known. Undefined: the call has nothing there. */
export function findAt(place: Place, judged: Judged): Found | 'unknown' | undefined {
  if (place.at === 'path') return one(readable(judged.parameters[place.index] ?? ''));
  if (place.at === 'rest') return one(judged.rest.split('/').map(readable).join('/'));
  const { request } = judged;
  if (request === undefined) return 'unknown';
  switch (place.at) {
    case 'query':
      return inQuery(request, place.name);
    case 'body':
      return inBody(request.body, place.names);
    case 'amount':
      return amountIn(request.body, place, judged.minorUnits);
    case 'subject':
      return subjectIn(request.body, place.names);
    case 'count':
      return countIn(request.body, place.names);
    case 'recipients':
      return recipientsOf(request);
  }
}

const one = (text: string): Found | undefined => (text === '' ? undefined : { texts: [text], more: 0 });

/** Decodes a segment of a path for people. A segment with an escaped slash stays escaped: `a%2Fb` is not two segments. */
function readable(segment: string): string {
  try {
    const text = decodeURIComponent(segment);
    return text.includes('/') ? segment : text;
  } catch {
    return segment;
  }
}

function inQuery({ query }: Request, name: string): Found | undefined {
  const values = query.filter(([each]) => each === name);
  const [value] = values;
  if (value === undefined || value[1] === '') return undefined;
  const used = { parameter: name };
  return values.length > 1
    ? { ...used, said: `(given ${values.length} times)` }
    : { ...used, texts: [value[1]], more: 0 };
}

/** The number of items of a list that are shown. */
const MAX_LISTED = 3;

function inBody(body: JsonObject, names: readonly string[]): Found | undefined {
  const { values, isListed, hasTwin } = lookUp(body, names);
  const present = values.filter((value) => value !== null && value !== '');
  const [first] = present;
  if (first === undefined) return undefined;
  const used = { names: [names] };
  // A list in place of a single value is never joined to one value.
  if (!isListed && typeof first === 'object') return { ...used, said: sizeOf(first) };
  const texts = present
    .slice(0, MAX_LISTED)
    .map((value) => (typeof value === 'object' ? sizeOf(value) : textOf(value)));
  const notes = [
    ...(hasTwin ? ['given in another spelling as well'] : []),
    ...(present.some(isInexact) ? ['not exact'] : []),
  ];
  return { ...used, texts, more: present.length - texts.length, ...(notes.length > 0 && { note: notes.join('; ') }) };
}

const textOf = (value: string | number | boolean | null): string =>
  typeof value === 'number' && !Number.isFinite(value) ? 'a number that is too large' : String(value);

/** Whether an integer has more digits than most JSON implementations preserve. */
const isInexact = (value: JsonValue): boolean =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);

const sizeOf = (value: JsonValue): string => {
  if (Array.isArray(value)) return `(a list of ${value.length})`;
  return `(an object of ${counted(Object.keys(value ?? {}).length, 'member')})`;
};

type LookedUp = { values: JsonValue[]; isListed: boolean; hasTwin: boolean };

/** Looks up members by their exact names. `hasTwin`: another spelling of a name is present, which a lenient server may read instead. */
function lookUp(body: JsonValue, names: readonly string[]): LookedUp {
  let values: JsonValue[] = [body];
  let [isListed, hasTwin] = [false, false];
  for (const name of names) {
    isListed ||= name === '*';
    values = values.flatMap((value) => {
      if (name === '*') return Array.isArray(value) ? value : [];
      if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return [];
      const folded = foldName(name);
      hasTwin ||= Object.keys(value).some((other) => other !== name && foldName(other) === folded);
      return [value[name] ?? null];
    });
  }
  return { values, isListed, hasTwin };
}

function amountIn(
  body: JsonObject,
  { amount, currency, form }: Extract<Place, { at: 'amount' }>,
  minorUnits: MinorUnits,
): Found | undefined {
  const {
    values: [value],
    hasTwin,
  } = lookUp(body, amount);
  if (value === undefined || value === null || value === '') return undefined;
  const given = lookUp(body, currency);
  const read = readAmount(value, given.values[0], { form, minorUnits }, shown);
  const used = { names: [amount, ...(given.values.length > 0 ? [currency] : [])] };
  if (read === 'unreadable') return { ...used, said: '(an amount that cannot be read)' };
  const twin = hasTwin || given.hasTwin ? 'given in another spelling as well' : undefined;
  if ('amount' in read) return { ...used, texts: [read.amount], more: 0, isAmount: true, ...(twin && { note: twin }) };
  return { ...used, texts: [read.number], more: 0, note: [read.lacking, ...(twin ? [twin] : [])].join('; ') };
}

function subjectIn(body: JsonObject, names: readonly string[]): Found | undefined {
  const [raw] = lookUp(body, names).values;
  const subject = typeof raw === 'string' ? readMessageSubject(raw) : undefined;
  return subject === undefined || subject === '' ? undefined : { names: [names], texts: [subject], more: 0 };
}

function countIn(body: JsonObject, names: readonly string[]): Found | undefined {
  const [list] = lookUp(body, names).values;
  return Array.isArray(list) ? { names: [names], texts: [String(list.length)], more: 0 } : undefined;
}

function recipientsOf(request: Request): Found | undefined {
  const { texts, names } = request.recipients();
  if (texts.length === 0) return undefined;
  return { names, texts: texts.slice(0, MAX_LISTED), more: Math.max(0, texts.length - MAX_LISTED) };
}

/** Returns how many members of a body the sentence does not mention. An unmentioned list or object counts once. */
export function countUnused(body: JsonObject, used: readonly (readonly string[])[]): number {
  const root: Node = { whole: false, members: new Map() };
  for (const names of used) {
    let node = root;
    for (const name of names) {
      const next = node.members.get(name) ?? { whole: false, members: new Map() };
      node.members.set(name, next);
      node = next;
    }
    node.whole = true;
  }
  return unusedIn(body, root);
}

type Node = { whole: boolean; members: Map<string, Node> };

function unusedIn(value: JsonValue, node: Node): number {
  if (node.whole) return 0;
  const below = (one: JsonValue, name: string): number => {
    const next = node.members.get(name);
    return next === undefined ? 1 : unusedIn(one, next);
  };
  if (Array.isArray(value))
    return node.members.has('*') ? value.reduce<number>((sum, one) => sum + below(one, '*'), 0) : 1;
  if (typeof value !== 'object' || value === null) return 1;
  return Object.entries(value).reduce((sum, [name, one]) => sum + below(one, name), 0);
}
