/** The JSON-RPC messages of a request to `/mcp`, as far as the broker looks at them before the SDK does. */

export type McpMessage = { method?: unknown; id?: unknown; params?: { name?: unknown; requestId?: unknown } };

/** One message, or a list of them as revision 2025-03-26 allows; none of what is neither. */
export async function messagesIn(request: Request): Promise<McpMessage[]> {
  const body: unknown = await request.json().catch(() => undefined);
  return [body].flat().filter((one): one is McpMessage => typeof one === 'object' && one !== null);
}
