/** Checks parameters that the MCP SDK accepts unchecked, or refuses as its own failure (-32603). */

/** Lists have one page, so every cursor is invalid. */
const LISTS = /^(?:tools|prompts|resources|resources\/templates)\/list$/;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the problem of a request's parameters, as the message of an error -32602 (JSON-RPC 2.0, Error object; MCP, Lifecycle and Pagination); undefined
 * when they are valid.
 */
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
  // Revision 2026-07-28, in which each request states its revision, has no such method.
  if (method !== 'initialize' || isObject(given._meta)) return undefined;
  const { protocolVersion, capabilities, clientInfo } = given;
  const isNamed = isObject(clientInfo) && typeof clientInfo.name === 'string' && typeof clientInfo.version === 'string';
  return typeof protocolVersion === 'string' && isObject(capabilities) && isNamed
    ? undefined
    : 'Invalid params: initialize takes protocolVersion, capabilities, and clientInfo with name and version.';
}
