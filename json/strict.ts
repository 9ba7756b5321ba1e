/**
 * Strict JSON of calls: what a person is shown, what a rule checks, what is hashed and what is sent must be the same value, so a text that two parsers could
 * read differently is refused.
 */
import { type Checked, type Checks, checkJson, checkJsonInParts, type Problem } from './first-problem.ts';
import type { JsonValue } from './json-value.ts';

export type StrictJsonLimits = {
  /** Maximum levels of arrays and objects; 64 by default. */
  maxDepth?: number;
  /** Maximum members of all objects together; unlimited by default. */
  maxMembers?: number;
  /** Maximum objects, arrays, strings, numbers and literals together; unlimited by default. */
  maxValues?: number;
  /** Members of the outermost object in which `\u0000` may occur. It is refused everywhere else. */
  nulAllowedIn?: readonly string[];
};

/** `bytes`: an estimate of the memory that the value takes; a text of many short values takes twenty times as much as its letters. */
export type StrictJson = { ok: true; value: JsonValue; bytes: number } | { ok: false; error: string };

/**
 * Parses one JSON text (RFC 8259). In addition to invalid grammar it refuses: more than 64 levels, a duplicate name in one object (compared after
 * unescaping), a number that JSON.stringify would write with another decimal value (`1e999`, 20 digits; `1.0`, `1e2` and `-0` are fine), lone surrogates, and
 * `\u0000` outside `limits.nulAllowedIn`.
 *
 * `error` contains the place (a JSON pointer, RFC 6901, or an offset in UTF-16 units) and the reason; it may quote up to 40 characters of the text. Never
 * throws. A member `__proto__` is an ordinary own member of its object: never merge such objects into others.
 */
export function parseStrictJson(text: string, limits: StrictJsonLimits = {}): StrictJson {
  if (!text.isWellFormed()) return ILL_FORMED;
  return parsed(text, checkJson(text, checksOf(limits)), limits);
}

/**
 * Parses a long text in parts, and awaits `rest` after each, so that other requests are served in between. `takeRoom`: reserves memory for the value
 * before it is built; undefined when it returns false.
 */
export async function parseStrictJsonInParts(
  text: string,
  limits: StrictJsonLimits,
  rest: () => Promise<void>,
  takeRoom = (_bytes: number): boolean => true,
): Promise<StrictJson | undefined> {
  if (!text.isWellFormed()) return ILL_FORMED;
  const checked = await checkJsonInParts(text, checksOf(limits), rest);
  if (checked.problem === undefined && !takeRoom(checked.bytes)) return undefined;
  await rest();
  const done = parsed(text, checked, limits);
  await rest();
  return done;
}

/** The end of the `error` for more than `maxValues` values. */
export const TOO_MANY_VALUES = 'it has too many values';

const MAX_DEPTH = 64;
const ILL_FORMED: StrictJson = { ok: false, error: 'the text holds a lone surrogate; send well-formed UTF-8' };

const checksOf = ({ maxDepth = MAX_DEPTH, maxMembers, maxValues, nulAllowedIn = [] }: StrictJsonLimits): Checks => ({
  maxDepth,
  ...(maxMembers !== undefined && { maxMembers }),
  ...(maxValues !== undefined && { maxValues }),
  exactNumbers: true,
  strings: { nulAllowedIn },
});

function parsed(text: string, { problem, bytes }: Checked, { maxDepth = MAX_DEPTH }: StrictJsonLimits): StrictJson {
  if (problem) return { ok: false, error: sentence(problem, maxDepth) };
  return { ok: true, value: JSON.parse(text) as JsonValue, bytes };
}

function sentence({ kind, at, place, detail }: Problem, maxDepth: number): string {
  if (kind === 'grammar') return `offset ${at}: ${detail}`;
  if (kind === 'members') return `offset ${at}: its objects have too many members`;
  if (kind === 'values') return `offset ${at}: ${TOO_MANY_VALUES}`;
  if (kind === 'depth') return `offset ${at}: nested deeper than ${maxDepth} levels`;
  const where = pointer(place);
  if (kind === 'repeated_name') return `${where}: this member name is there twice`;
  if (kind === 'nul') return `${where}: \\u0000 is not allowed here`;
  if (kind === 'lone_surrogate') return `${where}: a lone surrogate (offset ${at})`;
  return `${where}: the number ${detail} would be sent as another number; send it as a string`;
}

/** Formats a JSON pointer (RFC 6901); names are truncated after 64 characters. */
function pointer(place: Problem['place']): string {
  if (place.length === 0) return 'the value';
  const parts = place.map((part) => {
    const name = String(part).slice(0, 64).toWellFormed();
    return name
      .replaceAll('~', '~0')
      .replaceAll('/', '~1')
      .replaceAll(/[\0-\x1f]/g, '?');
  });
  return `/${parts.join('/')}`;
}
