/** The JSON-RPC messages of a request to `/mcp`, as far as the broker looks at them before the SDK does. */

export type McpMessage = { method?: unknown; id?: unknown; params?: McpParams | null };

type McpParams = {
  name?: unknown;
  arguments?: { approval_id?: unknown } | null;
  requestId?: unknown;
  requestState?: unknown;
  taskId?: unknown;
};

/** As many as the SDK takes in one list (its MAX_BATCH_SIZE), which it says only after the broker has looked at them. */
const MOST_MESSAGES = 100;

/** One message, or a list of them as revision 2025-03-26 allows; none of what is neither. Undefined: they are too many. */
export async function messagesIn(request: Request): Promise<McpMessage[] | undefined> {
  const body: unknown = await request.json().catch(() => undefined);
  const list: unknown[] = Array.isArray(body) ? body : [body];
  if (list.length > MOST_MESSAGES) return undefined;
  return list.filter((one): one is McpMessage => typeof one === 'object' && one !== null);
}

/** The SDK's own answer to a list that is too long. */
export function tooManyMessages(): Response {
  const error = { code: -32600, message: `Invalid Request: Batch must not exceed ${MOST_MESSAGES} messages` };
  return Response.json({ jsonrpc: '2.0', error, id: null }, { status: 400 });
}

/** What is to be answered, and so may wait. Notifications, and answers of the client's, are taken and that is all. */
export const isRequest = ({ method, id }: McpMessage): boolean => method !== undefined && id !== undefined;

/** Whether it can name a request (JSON-RPC 2.0 section 4; null is for what has no id). */
export const isRequestId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number';
