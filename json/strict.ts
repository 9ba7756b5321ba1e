/**
 * JSON as a call may carry it: what a person is shown, what a rule looks at, what is hashed and what is sent must be
 * one and the same value, so a text that two readers could understand differently is refused (decisions, Calling).
 */
import { type Checks, firstProblem, firstProblemInParts, type Problem } from './first-problem.ts';
import type { JsonValue } from './json-value.ts';

export type StrictJsonLimits = {
  /** Levels of arrays and objects; 64 unless told. */
  maxDepth?: number;
  /** Members of all objects together; any number unless told. */
  maxMembers?: number;
  /** Objects, arrays, strings, numbers and literals together; any number unless told. */
  maxValues?: number;
  /** Members of the outermost object in which `\u0000` may occur. Everywhere else it is refused. */
  nulAllowedIn?: readonly string[];
};

export type StrictJson = { ok: true; value: JsonValue } | { ok: false; error: string };

/**
 * Parses one JSON text (RFC 8259). On top of the grammar it refuses: more than 64 levels, a name twice in one object
 * (compared after unescaping), a number that JSON.stringify would write with another decimal value (`1e999`, 20
 * digits; `1.0`, `1e2` and `-0` are fine), lone surrogates, and `\u0000` outside `limits.nulAllowedIn`.
 *
 * `error` says where (a JSON pointer, RFC 6901, or an offset in UTF-16 units) and why; it may quote up to 40
 * characters of the text. Nothing is thrown. Objects carry a member `__proto__` as their own, plain member: never
 * merge them into another object.
 */
export function parseStrictJson(text: string, limits: StrictJsonLimits = {}): StrictJson {
  if (!text.isWellFormed()) return ILL_FORMED;
  return parsed(text, firstProblem(text, checksOf(limits)), limits);
}

/** The same, for a long text: `rest` is awaited after each part of it, so that others are answered meanwhile. */
export async function parseStrictJsonInParts(
  text: string,
  limits: StrictJsonLimits,
  rest: () => Promise<void>,
): Promise<StrictJson> {
  if (!text.isWellFormed()) return ILL_FORMED;
  const problem = await firstProblemInParts(text, checksOf(limits), rest);
  await rest();
  const done = parsed(text, problem, limits);
  await rest();
  return done;
}

/** The end of what `error` says of more than `maxValues`. */
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

function parsed(text: string, problem: Problem | undefined, { maxDepth = MAX_DEPTH }: StrictJsonLimits): StrictJson {
  if (problem) return { ok: false, error: sentence(problem, maxDepth) };
  return { ok: true, value: JSON.parse(text) as JsonValue };
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

/** RFC 6901; a name is cut after 64 characters. */
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
