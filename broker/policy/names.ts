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
 * brackets in other places are dropped by Rack (`[a]` is `a`) and replaced by PHP (`a[b` is `a_b`).
 */
export function parameterNames(name: string): string[] {
  if (!name.includes('[') && !name.includes(']')) return [foldName(name)];
  const head = foldName(name.split(/[[\]]+/).find((part) => part !== '') ?? '');
  return BRACKETED.test(name) ? [head] : [head, foldName(name)];
}
