// Parses an identifier of a person as an agent sends it and an owner types it.

/**
 * Parses an assertion, or `source:id` as in the header X-Svc-Caller. Throws an error with a message for a person.
 *
 * @param {string} text
 * @returns {{ assertion: string } | { source: string, id: string }}
 */
export function callerOf(text) {
  const value = text.trim().replace(/^(jwt|id) +/, '');
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(value) && !value.includes(':')) return { assertion: value };
  const colon = value.indexOf(':');
  if (colon < 1) throw new Error('Write it as source:id, such as slack:U024BE7LH, or paste an assertion.');
  return { source: value.slice(0, colon), id: value.slice(colon + 1) };
}
