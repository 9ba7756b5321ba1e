/**
 * Names of headers, query parameters and members of a body, as lenient servers compare them. CGI, WSGI, Rack and PHP map several characters to one
 * (`X_Api-Key` arrives as `HTTP_X_API_KEY`, `?user.id` as `user_id`), others ignore letter case, and readers of proto3 JSON accept `email_address` for
 * `emailAddress`. Every list that forbids, constrains or matches a name compares the folded name, so that another spelling does not bypass it.
 */

/** Names that fold to themselves. Most names of members and parameters do. */
const FOLDED = /^_?[a-z0-9]+$/;
const ASCII = /^[\x00-\x7f]*$/;
/** Punctuation, blanks, symbols: characters that a server may drop or replace. */
const SEPARATORS = /[^\p{L}\p{N}\p{M}]+/gu;
const ASCII_SEPARATORS = /[^a-z0-9]+/g;
/** `list[]`, `a[b][0]`: forms that all servers read alike. */
const BRACKETED = /^[^[\]]+(?:\[[^[\]]*\])+$/;

/** Whether a name is folded already. */
export const isFolded = (name: string): boolean => FOLDED.test(name);

/**
 * Folds a name for comparison: NFKC, lower case, without separators. A separator at the start is kept, as `_`: all servers distinguish `_method` and
 * `method`.
 */
export function foldName(name: string): string {
  if (FOLDED.test(name)) return name;
  const isAscii = ASCII.test(name);
  // PHP drops blanks at the start.
  const text = (isAscii ? name : name.normalize('NFKC')).trim().toLowerCase();
  const folded = text.replace(isAscii ? ASCII_SEPARATORS : SEPARATORS, '');
  return text !== '' && text.search(isAscii ? ASCII_SEPARATORS : SEPARATORS) === 0 ? `_${folded}` : folded;
}

/**
 * Returns the folded names under which servers may find a query parameter or form field. `a[b]` is `a` on all servers; brackets in other places are dropped
 * by Rack (`[a]` is `a`) and replaced by PHP (`a[b` is `a_b`), which ends a name at a NUL (`php_register_variable_ex`).
 */
export function parameterNames(name: string): string[] {
  const nul = name.indexOf('\0');
  return nul < 0 ? namesOf(name) : [...namesOf(name), ...namesOf(name.slice(0, nul))];
}

function namesOf(name: string): string[] {
  if (!name.includes('[') && !name.includes(']')) return [foldName(name)];
  const head = foldName(name.split(/[[\]]+/).find((part) => part !== '') ?? '');
  return BRACKETED.test(name) ? [head] : [head, foldName(name)];
}

/** Folded names of parameters, and prefixes of names. */
export type NameList = { names: ReadonlySet<string>; beginnings: readonly string[] };

/**
 * Compiles a list of names for comparison. `x-amz-*` stands for all names with this prefix.
 *
 * @returns undefined for an empty list, so that callers can skip the check
 */
export function nameList(written: readonly string[]): NameList | undefined {
  if (written.length === 0) return undefined;
  const isBeginning = (name: string) => name.endsWith('*');
  return {
    names: new Set(written.filter((name) => !isBeginning(name)).map(foldName)),
    beginnings: written.filter(isBeginning).map((name) => foldName(name.slice(0, -1))),
  };
}

/** Whether a server may read a query parameter or field of this name as one of the list. */
export const isListed = ({ names, beginnings }: NameList, name: string): boolean =>
  parameterNames(name).some((one) => names.has(one) || beginnings.some((beginning) => one.startsWith(beginning)));

/** Parses a query. Some servers treat `;` as `&` (HTML 4.01, B.2.2). */
export function queryParameters(query: string): [string, string][] {
  return query === '' ? [] : [...new URLSearchParams(query.replaceAll(';', '&'))];
}
