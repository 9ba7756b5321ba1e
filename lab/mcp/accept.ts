/** Requests of programs that take any type of answer. */

const BOTH_TYPES = 'application/json, text/event-stream';

/**
 * Has a request name both types that an answer may have, where it says nothing or any type (RFC 9110 section 12.5.1): the SDK looks for the two
 * names alone, and answers 406 to curl, to fetch, and to HTTP libraries that send no Accept.
 */
export function nameBothTypes(headers: Headers): void {
  if (headers.get('accept')?.includes('*/*') ?? true) headers.set('accept', BOTH_TYPES);
}
