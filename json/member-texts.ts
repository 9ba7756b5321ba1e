/** Parses JSON whose values stay text, as they were written, so that numbers keep their digits. */
import { JsonTokens } from './tokens.ts';

/** Code units after which the processing of a long text yields. */
const PART = 32 * 1024;

/** Whether JSON.parse accepts the text, and no value is nested deeper than `levels`. */
export function isJsonWithin(text: string, levels: number): boolean {
  return drain(jsonWithin(text, { levels }));
}

/** Checks the same, and the maximum number of values (objects, arrays, strings, numbers and literals). Yields after each part of the text. */
export function* jsonWithin(
  text: string,
  { levels, values = Number.POSITIVE_INFINITY }: { levels: number; values?: number },
): Generator<void, boolean> {
  const tokens = new JsonTokens(text);
  let seen = 0;
  for (let until = PART; ; ) {
    const token = tokens.next();
    if (token === 'end') return true;
    if (token === 'bad' || tokens.depth > levels) return false;
    if (token !== 'name' && token !== 'close' && ++seen > values) return false;
    if (tokens.end >= until) {
      yield;
      until = tokens.end + PART;
    }
  }
}

/**
 * Returns the members of a JSON object as they are written, by name. Undefined: the text is not JSON, or not an object. `unclear`: a name is duplicate, so
 * that parsers would differ in the value, or there are more than `most` names. Yields after each part of the text.
 */
export function* objectMembers(
  text: string,
  most = Number.POSITIVE_INFINITY,
): Generator<void, Map<string, string> | 'unclear' | undefined> {
  const tokens = new JsonTokens(text);
  const members = new Map<string, string>();
  if (tokens.next() !== 'object') return undefined;
  let isTwice = false;
  for (let until = PART; ; ) {
    const first = tokens.next();
    if (first === 'close' && tokens.next() === 'end') return isTwice ? 'unclear' : members;
    if (first !== 'name') return undefined;
    const name = JSON.parse(text.slice(tokens.start, tokens.end)) as string;
    let token = tokens.next();
    const from = tokens.start;
    while (token !== 'bad' && tokens.depth > 1) {
      token = tokens.next();
      if (tokens.end < until) continue;
      yield;
      until = tokens.end + PART;
    }
    if (token === 'bad') return undefined;
    if (members.has(name)) isTwice = true;
    members.set(name, text.slice(from, tokens.end));
    if (members.size > most) return 'unclear';
    if (tokens.end < until) continue;
    yield;
    until = tokens.end + PART;
  }
}

function drain<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/**
 * Returns the members of a JSON object as they are written, by name. Undefined when a name is duplicate: parsers would differ in the value.
 *
 * @param text one that JSON.parse accepts as an object
 */
export function memberTexts(text: string): Map<string, string> | undefined {
  const members = drain(objectMembers(text));
  return members === 'unclear' ? undefined : members;
}

/**
 * Returns the items of a JSON list as they are written.
 *
 * @param text one that JSON.parse accepts as a list
 */
export function itemTexts(text: string): string[] {
  const tokens = new JsonTokens(text);
  const items: string[] = [];
  tokens.next();
  for (let token = tokens.next(); token !== 'close'; token = tokens.next()) {
    const from = tokens.start;
    while (tokens.depth > 1) tokens.next();
    items.push(text.slice(from, tokens.end));
  }
  return items;
}
