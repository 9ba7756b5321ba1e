/**
 * Names of headers, query parameters and members of a body, as lenient servers compare them. CGI, WSGI, Rack and PHP put
 * one character in place of several (`X_Api-Key` arrives as `HTTP_X_API_KEY`, `?user.id` as `user_id`), others ignore
 * letter case, and readers of proto3 JSON take `email_address` for `emailAddress`. Every list that forbids, constrains or
 * matches a name compares the folded name, so that a spelling is no way around it.
 */

/** Folds to itself. Most names of members and parameters are like this. */
const FOLDED = /^_?[a-z0-9]+$/;
const ASCII = /^[\x00-\x7f]*$/;
/** Punctuation, blanks, symbols: what a server may drop, or put another character in place of. */
const SEPARATORS = /[^\p{L}\p{N}\p{M}]+/gu;
const ASCII_SEPARATORS = /[^a-z0-9]+/g;
/** `list[]`, `a[b][0]`: read alike by everybody. */
const BRACKETED = /^[^[\]]+(?:\[[^[\]]*\])+$/;

/** Whether a name is the form in which it is compared. */
export const isFolded = (name: string): boolean => FOLDED.test(name);

/**
 * The form in which a name is compared: NFKC, lower case, without separators. A separator at the start stays, as `_`:
 * `_method` and `method` are two names to everybody.
 */
export function foldName(name: string): string {
  if (FOLDED.test(name)) return name;
  const isAscii = ASCII.test(name);
  // Blanks at the start are dropped by PHP.
  const text = (isAscii ? name : name.normalize('NFKC')).trim().toLowerCase();
  const folded = text.replace(isAscii ? ASCII_SEPARATORS : SEPARATORS, '');
  return text !== '' && text.search(isAscii ? ASCII_SEPARATORS : SEPARATORS) === 0 ? `_${folded}` : folded;
}

/**
 * What the name of a query parameter or form field may be called once it is read, folded. `a[b]` is `a` to everybody;
 * brackets in other places are dropped by Rack (`[a]` is `a`) and replaced by PHP (`a[b` is `a_b`), which ends a name at a NUL
 * (`php_register_variable_ex`).
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

/** Names of parameters, and beginnings of such, folded. */
export type NameList = { names: ReadonlySet<string>; beginnings: readonly string[] };

/**
 * A list of names as it is compared. `x-amz-*` stands for all names that begin so.
 *
 * @returns undefined for an empty list, so that nothing is looked for
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
