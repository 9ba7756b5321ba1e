/** Parameters that the MCP SDK takes as they are, or refuses as its own failure (-32603). */

/** Lists have one page, so no cursor was given out for any. */
const LISTS = /^(?:tools|prompts|resources|resources\/templates)\/list$/;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is wrong with the parameters of a request, in words for an error -32602 (JSON-RPC 2.0, Error object; MCP, Lifecycle and Pagination). */
export function wrongParams({
  method,
  id,
  params,
}: {
  method?: unknown;
  id?: unknown;
  params?: unknown;
}): string | undefined {
  if (id === undefined || typeof method !== 'string') return undefined;
  const given = isObject(params) ? params : {};
  if (LISTS.test(method) && given.cursor !== undefined)
    return 'Invalid cursor: the list has one page. Ask for it without a cursor.';
  // Revision 2026-07-28, in which each request says its revision, has no such method.
  if (method !== 'initialize' || isObject(given._meta)) return undefined;
  const { protocolVersion, capabilities, clientInfo } = given;
  const isNamed = isObject(clientInfo) && typeof clientInfo.name === 'string' && typeof clientInfo.version === 'string';
  return typeof protocolVersion === 'string' && isObject(capabilities) && isNamed
    ? undefined
    : 'Invalid params: initialize takes protocolVersion, capabilities, and clientInfo with name and version.';
}
