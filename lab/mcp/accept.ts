/** Normalises the Accept header of clients that accept any type. */

const BOTH_TYPES = 'application/json, text/event-stream';

/**
 * Sets both possible types of an answer in Accept when the header is missing or accepts any type (RFC 9110 section 12.5.1): the SDK only searches for the two
 * names, and answers 406 to curl, to fetch, and to HTTP libraries that send no Accept.
 */
export function nameBothTypes(headers: Headers): void {
  if (headers.get('accept')?.includes('*/*') ?? true) headers.set('accept', BOTH_TYPES);
}
