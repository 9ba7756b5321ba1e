/**
 * Members of a body that make an operation write refs which the call does not name: an issue that is assigned to an agent of the code host, a fork that is
 * created for an advisory. Without them the operation writes the refs of the rest of its rule.
 */
import { type CallAsk, type JsonValue, readMembers, UnreadBody } from '../facts.ts';
import { parameterNames } from '../names.ts';
import { matchesGlob } from '../pattern.ts';
import type { RefDoubt, RefDoubtSource } from '../platform-rules.ts';
import { POINTER, pointerNames } from '../pointer.ts';

/** @throws Error with a sentence that describes what to write */
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

/** Returns why the refs that a call writes cannot be determined, because of a member of its body; undefined when no such member is present. */
export function doubtOf(
  { names, at, why, values, unless }: RefDoubt,
  { query, body, isForm }: CallAsk,
): string | undefined {
  if (body instanceof UnreadBody) return body.why;
  const [first] = names;
  // Some servers also read members of a body from the query.
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

/** Whether a value is this boolean; in a form, booleans are texts. */
export const isBoolean = (value: JsonValue | undefined, is: boolean | undefined, isForm = false): boolean =>
  is !== undefined && (value === is || (isForm && value === String(is)));

/** Returns the values under names in any spelling, including those in each element of a list. */
function valuesAt(value: JsonValue, names: readonly string[]): JsonValue[] {
  const [name, ...rest] = names;
  if (Array.isArray(value)) return value.flatMap((one) => valuesAt(one, names));
  if (name === undefined) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([member, inner]) =>
    parameterNames(member).includes(name) ? valuesAt(inner, rest) : [],
  );
}

/** Whether a text is one of the values; of an object, whether any text in it is. */
function isAnyOf(value: JsonValue, values: readonly string[]): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some((one) => isAnyOf(one, values));
  return values.some((pattern) => matchesGlob(pattern, foldText(String(value))));
}

/** Logins ignore letter case, and some clients write them with `@`. */
const foldText = (text: string): string => text.normalize('NFKC').trim().toLowerCase().replace(/^@/, '');
