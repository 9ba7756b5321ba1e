/** What a sentence is filled from: a call as it was judged, or no more of it than its path. */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { readMessageSubject } from '../policy/addresses.ts';
import { foldName } from '../policy/names.ts';
import { type MinorUnits, readAmount } from './money.ts';
import { counted, shown } from './readable.ts';
import type { Place } from './template.ts';

/** `body`: of a GraphQL call or a tool its arguments. */
export type Request = {
  query: readonly (readonly [string, string])[];
  body: JsonObject;
  /** Whom the call names, and where. Looked up when a sentence says it. */
  recipients(): { texts: readonly string[]; names: readonly (readonly string[])[] };
};

/** `parameters`: what stands for each `*` of the operation's path. `request`: undefined where only the path is known. */
export type Judged = {
  parameters: readonly string[];
  rest: string;
  request: Request | undefined;
  minorUnits: MinorUnits;
};

/** What was used for it, to count what was not: members by their names, and parameters of the query. */
type Used = { names?: readonly (readonly string[])[]; parameter?: string };

/** What is at a place: texts of the request, or `said` in our words, since it is no text. */
export type Found = Used &
  ({ texts: readonly string[]; more: number; note?: string; isAmount?: true } | { said: string });

/** `unknown`: only the path is known. Undefined: the call has nothing there. */
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

/** A segment of a path as it reads. An escaped slash stays one: `a%2Fb` is no two segments. */
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

/** Lists are shown so far. */
const MOST_LISTED = 3;

function inBody(body: JsonObject, names: readonly string[]): Found | undefined {
  const { values, isListed, hasTwin } = lookUp(body, names);
  const present = values.filter((value) => value !== null && value !== '');
  const [first] = present;
  if (first === undefined) return undefined;
  const used = { names: [names] };
  // A list where one value is expected is never joined to one.
  if (!isListed && typeof first === 'object') return { ...used, said: sizeOf(first) };
  const texts = present
    .slice(0, MOST_LISTED)
    .map((value) => (typeof value === 'object' ? sizeOf(value) : textOf(value)));
  const notes = [
    ...(hasTwin ? ['given in another spelling as well'] : []),
    ...(present.some(isInexact) ? ['not exact'] : []),
  ];
  return { ...used, texts, more: present.length - texts.length, ...(notes.length > 0 && { note: notes.join('; ') }) };
}

const textOf = (value: string | number | boolean | null): string =>
  typeof value === 'number' && !Number.isFinite(value) ? 'a number that is too large' : String(value);

/** More digits than a number of JSON keeps on its way through most programs. */
const isInexact = (value: JsonValue): boolean =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);

const sizeOf = (value: JsonValue): string => {
  if (Array.isArray(value)) return `(a list of ${value.length})`;
  return `(an object of ${counted(Object.keys(value ?? {}).length, 'member')})`;
};

type LookedUp = { values: JsonValue[]; isListed: boolean; hasTwin: boolean };

/** By the very name: what a lenient server may take for the same member is a `twin`, and is told. */
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
  return { names, texts: texts.slice(0, MOST_LISTED), more: Math.max(0, texts.length - MOST_LISTED) };
}

/** How many members of a body were not used: what a sentence leaves out. One that is a list or an object counts once. */
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
