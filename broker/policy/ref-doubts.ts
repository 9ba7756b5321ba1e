/**
 * Members of a body with which an operation writes refs that the call does not name: an issue that is assigned to an agent of the code
 * host, a fork that is made beside an advisory. Without them the operation writes what the rest of its rule says.
 */
import { type CallAsk, type JsonValue, readMembers, UnreadBody } from './facts.ts';
import { parameterNames } from './names.ts';
import { matchesGlob } from './pattern.ts';
import type { RefDoubt, RefDoubtSource } from './platform-rules.ts';
import { POINTER, pointerNames } from './pointer.ts';

/** @throws Error with a sentence that says what to write */
export function compileDoubt({ at, why, values, unless }: RefDoubtSource): RefDoubt {
  if (!POINTER.test(at) || at.includes('*'))
    throw new Error('a member that leaves open what is written has a JSON pointer without `*`: `at: /assignees`');
  return {
    at,
    names: pointerNames(at),
    why,
    ...(values && { values: values.map(foldText) }),
    ...(unless !== undefined && { unless }),
  };
}

/** Why it cannot be told which refs a call writes, because of what its body holds; undefined: nothing in it says so. */
export function doubtOf(
  { names, at, why, values, unless }: RefDoubt,
  { query, body, isForm }: CallAsk,
): string | undefined {
  if (body instanceof UnreadBody) return body.why;
  const [first] = names;
  // Some servers take members of a body from the query too.
  const queried = [...new URLSearchParams(query.replaceAll(';', '&'))].some(([name]) =>
    [name, name.split('.', 1)[0] ?? ''].some((one) => parameterNames(one).some((each) => each === first)),
  );
  if (queried) return `the query must not name \`${at}\` where refs are limited`;
  const found = valuesAt(readMembers({ body }), names);
  const counts = found.filter((value) =>
    values === undefined ? !isBoolean(value, unless, isForm) : isAnyOf(value, values),
  );
  return counts.length === 0 ? undefined : why;
}

/** In a form a boolean is a text. */
export const isBoolean = (value: JsonValue | undefined, is: boolean | undefined, isForm = false): boolean =>
  is !== undefined && (value === is || (isForm && value === String(is)));

/** The values under names in any spelling, also of each element of a list. */
function valuesAt(value: JsonValue, names: readonly string[]): JsonValue[] {
  const [name, ...rest] = names;
  if (Array.isArray(value)) return value.flatMap((one) => valuesAt(one, names));
  if (name === undefined) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([member, inner]) =>
    parameterNames(member).includes(name) ? valuesAt(inner, rest) : [],
  );
}

/** Whether a text is one of the values; of an object any text that it holds. */
function isAnyOf(value: JsonValue, values: readonly string[]): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some((one) => isAnyOf(one, values));
  return values.some((pattern) => matchesGlob(pattern, foldText(String(value))));
}

/** Logins have no letter case, and some clients write them with `@`. */
const foldText = (text: string): string => text.normalize('NFKC').trim().toLowerCase().replace(/^@/, '');
