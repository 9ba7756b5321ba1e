/** Determines which refs the calls of a platform write, from the rules of its manifest. */

import { type CallAsk, type JsonObject, type JsonValue, type RefChange, UnreadBody } from '../facts.ts';
import { foldName, parameterNames, queryParameters } from '../names.ts';
import type {
  Operation,
  PlatformRules,
  RefDoubt,
  RefDoubtSource,
  RefPosition,
  RefPositionSource,
  RefRule,
  RefRuleSource,
} from '../platform-rules.ts';
import { POINTER } from '../pointer.ts';
import { foldPath, spellingsOf, unescapeOnce } from '../spelling.ts';
import { compileDoubt, doubtOf, isBoolean } from './doubts.ts';
import { refNameProblem } from './name.ts';

/** A ref that a call writes. `name` is its full name; undefined when no name can be determined, for the reason in `why`. */
export type WrittenRef = { action: RefChange } & ({ name: string } | { name?: undefined; why: string });

/** Values that git, and so some servers, would not read as relative to the prefix. */
const BEGINS_A_NAME = /^(?:refs|heads|tags|remotes)\//;

/** @throws Error with a sentence that describes the problem */
export function compileRefRule(operation: Operation, source: RefRuleSource): RefRule {
  const folded = operation.kind === 'http' ? foldPath(operation.path.segments) : [];
  if (typeof source === 'string') return { operation, folded, writes: source, doubts: [] };
  const writes = source.flatMap((one) => ('why' in one ? [] : [compilePosition(operation, one)]));
  return {
    operation,
    folded,
    writes,
    doubts: source.flatMap((one) => ('why' in one ? [readDoubt(operation, one)] : [])),
  };
}

/** Quick check: whether the segments before the first partial wildcard equal those of the path. */
function mayMatch(pattern: readonly string[], path: readonly string[]): boolean {
  for (const [i, piece] of pattern.entries()) {
    if (piece === '*') continue;
    if (piece.includes('*')) return true;
    if (piece !== path[i]) return false;
  }
  return true;
}

/** Returns the refs that a call writes by these rules, or why they cannot be determined. A GET without a rule writes none. */
export function writtenByRules(
  { refs: rules, isForm }: Pick<PlatformRules, 'refs' | 'isForm'>,
  asked: CallAsk,
): WrittenRef[] | string {
  const call = asked.isForm === undefined && isForm ? { ...asked, isForm } : asked;
  const spellings = spellingsOf(call.path);
  const segments = call.path.slice(1).split('/');
  const found = rules.filter(({ operation, folded }) => {
    if (operation.kind !== 'http' || operation.method !== call.method) return false;
    const { path } = operation;
    // Most rules are for other paths, which the first segments exclude quickly.
    if (!mayMatch(path.segments, segments) && !spellings.some((one) => mayMatch(folded, one))) return false;
    return path.matchesAnySpelling(call.path, spellings);
  });
  if (found.length === 0 && call.method !== 'GET') return 'it is not known which refs this operation writes';
  const written: WrittenRef[] = [];
  for (const { operation, writes, doubts } of found) {
    if (typeof writes === 'string') return writes;
    for (const doubt of doubts) {
      const why = doubtOf(doubt, call);
      if (why !== undefined) return why;
    }
    for (const position of writes) written.push(...readPosition(position, operation, call));
  }
  return written;
}

function readDoubt(operation: Operation, source: RefDoubtSource): RefDoubt {
  try {
    if (operation.kind !== 'http') throw new Error('only operations with a method and a path write refs');
    return compileDoubt(source);
  } catch (error) {
    throw new Error(`refs "${operation.source}": ${(error as Error).message}`);
  }
}

function compilePosition(operation: Operation, source: RefPositionSource): RefPosition {
  const refuse = (why: string): never => {
    throw new Error(`refs "${operation.source}": ${why}`);
  };
  const { in: place, at = '', prefix = '', action, unless } = source;
  if (operation.kind !== 'http') return refuse('only operations with a method and a path write refs');
  if (place === 'path') {
    if (operation.path.segments.filter((segment) => segment === '**').length !== 1)
      return refuse('a ref in the path is what `**` matches, so write `**` once');
    if (at !== '') return refuse('`at` is not for the path');
  } else if (place === 'body' && !POINTER.test(at)) {
    return refuse('a ref in the body has a JSON pointer: `at: /branch`');
  } else if (at === '') return refuse('a ref in the query has the name of a parameter: `at: branch`');
  if (unless !== undefined && (!POINTER.test(unless.at) || unless.at.includes('*')))
    return refuse('`unless` has a JSON pointer to one member: `at: /draft`');
  return { in: place, at, prefix, action, ...(unless && { unless }) };
}

function readPosition(position: RefPosition, operation: Operation, call: CallAsk): WrittenRef[] {
  const { action, unless } = position;
  if (unless !== undefined && isSaid(unless, call)) return [];
  const values = valuesAt(position, operation, call);
  if (typeof values === 'string') return [{ action, why: values }];
  return values.map((value) => {
    const name = nameOf(value, position);
    return name === undefined
      ? { action, why: `${JSON.stringify(value)} is no plain name of a ref${place(position)}` }
      : { action, name };
  });
}

const place = ({ in: where, at, prefix }: RefPosition): string =>
  `${where === 'path' ? '' : ` at \`${at}\``}${prefix === '' ? '; write it in full, as "refs/heads/x"' : ` under ${prefix}`}`;

/** Returns the full name; undefined when a server may read the value as another ref. */
function nameOf(value: string, { prefix }: RefPosition): string | undefined {
  if (prefix === 'refs/' ? value.startsWith('refs/') : prefix !== '' && BEGINS_A_NAME.test(value)) return undefined;
  const name = prefix + value;
  return refNameProblem(name) === undefined ? name : undefined;
}

function valuesAt(position: RefPosition, operation: Operation, call: CallAsk): string[] | string {
  switch (position.in) {
    case 'path':
      return inPath(operation, call.path);
    case 'query':
      return inQuery(position.at, call);
    case 'body':
      return inBody(position.at, call);
  }
}

/** Returns what `**` of the operation matches, in a path with a single reading. */
function inPath(operation: Operation, path: string): string[] | string {
  if (operation.kind !== 'http' || !operation.path.matches(path)) return 'the path does not name a ref plainly';
  const pattern = operation.path.segments;
  const before = pattern.indexOf('**');
  const segments = path.slice(1).split('/');
  const rest = segments.slice(before, segments.length - (pattern.length - before - 1)).map(unescapeOnce);
  const name = rest.join('/');
  return /[;%#]/.test(name) ? 'the path does not name a ref plainly' : [name];
}

function inQuery(at: string, { query, body }: CallAsk): string[] | string {
  if (body instanceof UnreadBody) return body.why;
  const named = queryParameters(query).filter(([name]) => parameterNames(name).includes(foldName(at)));
  const [only, other] = named;
  if (only === undefined) return `the query does not name a ref (\`${at}\`)`;
  if (other !== undefined || only[0] !== at || namesMember(body, foldName(at)))
    return `\`${at}\` is named more than once, or in another spelling`;
  return [only[1]];
}

function inBody(at: string, { query, body }: CallAsk): string[] | string {
  if (body instanceof UnreadBody) return body.why;
  const names = exactNames(at);
  if (isQueried(query, names)) return `the query must not name \`${at}\` where refs are limited`;
  return textsAt(body, names) ?? `the body does not name a ref plainly; write \`${at}\` once, as a text`;
}

/** Whether the body has exactly this value, unambiguously. */
function isSaid({ at, is }: { at: string; is: boolean }, { query, body, isForm }: CallAsk): boolean {
  const names = exactNames(at);
  if (body instanceof UnreadBody || isQueried(query, names)) return false;
  const value = names.reduce<JsonValue | undefined>((inner, name) => memberOf(inner, name), body);
  return isBoolean(value, is, isForm);
}

/** Returns the names of a pointer as they are written, unescaped. */
function exactNames(pointer: string): string[] {
  return pointer
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Some servers also read members of a body from the query. */
function isQueried(query: string, [first = '']: readonly string[]): boolean {
  return queryParameters(query).some(([name]) => parameterNames(name).includes(foldName(first)));
}

/** Returns a member of an object; undefined when the name also, or only, occurs in another spelling. */
function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const [only, other] = Object.keys(value).filter((one) => foldName(one) === foldName(name));
  return only === name && other === undefined ? value[name] : undefined;
}

/**
 * Returns the texts under a pointer; undefined when one is missing, is not a text, or has a second spelling of the same name beside it: some servers read the
 * other spelling, and others ignore it and use a default.
 */
function textsAt(value: JsonValue | undefined, [name, ...rest]: readonly string[]): string[] | undefined {
  if (name === undefined) return typeof value === 'string' ? [value] : undefined;
  if (name === '*') {
    if (typeof value !== 'object' || value === null) return undefined;
    const found = Object.values(value).map((one) => textsAt(one, rest));
    const texts = found.flatMap((one) => one ?? []);
    return found.length === 0 || found.includes(undefined) ? undefined : texts;
  }
  return textsAt(memberOf(value, name), rest);
}

function namesMember(body: JsonObject | undefined, folded: string): boolean {
  return Object.keys(body ?? {}).some((name) => foldName(name) === folded);
}
