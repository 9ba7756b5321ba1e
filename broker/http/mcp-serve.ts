/** One request of an MCP client: the SDK's handler behind what the token was asked for. */
import type { ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { agentClient } from '../../mcp/client/agent-client.ts';
import { permissionWatch } from '../../mcp/tools/permission-watch.ts';
import { toolServer } from '../../mcp/tools/tool-server.ts';
import { MOST_WAIT_MS } from '../../mcp/tools/waiting.ts';
import { readBuild } from '../build.ts';
import { storedRepeats } from './mcp-repeats.ts';
import { insufficientScope } from './mcp-scopes.ts';
import { mcpSend } from './mcp-send.ts';
import type { Context } from './route.ts';

/** A call of 1 MiB, the largest there is, as it stands in a message. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** Longer than any tool waits. A stream of news is opened again by its client. */
const MAX_REQUEST_MS = 120_000;

const { version } = readBuild();

type McpContext = Context<'mcp_client', undefined>;

/** Answers the request, and ends with it. */
export function serveMcp(context: McpContext, response: ServerResponse): void {
  const { log } = context.governor.broker;
  const onerror = (error: Error) => log.debug({ err: error }, 'an MCP request was refused');
  const gone = new AbortController();
  const served = serve(context, gone.signal, onerror);
  const answer = toNodeHandler(served, { onerror, maxRequestBodySize: MAX_BODY_BYTES });
  const over = setTimeout(() => response.destroy(), MAX_REQUEST_MS);
  response.once('close', () => {
    clearTimeout(over);
    gone.abort(new Error('nobody is there any more'));
    void served.close();
  });
  void answer(context.request as Parameters<typeof answer>[0], response);
}

/** The SDK's handler of one request, behind what the token was asked for. */
function serve(context: McpContext, gone: AbortSignal, onerror: (error: Error) => void) {
  const { governor, who } = context;
  const handler = createMcpHandler(() => toolServer(hostOf(context, gone), { version }), {
    onerror,
    maxRequestBodySize: MAX_BODY_BYTES,
    maxSubscriptions: 1,
  });
  const fetch: typeof handler.fetch = async (request, options) => {
    const body: unknown = await request
      .clone()
      .json()
      .catch(() => undefined);
    const refused = insufficientScope(governor.broker, who.access?.scopes ?? new Set(), body);
    return refused ?? (await handler.fetch(request, options));
  };
  return { fetch, close: handler.close };
}

function hostOf(context: McpContext, gone: AbortSignal) {
  const client = agentClient(mcpSend(context, gone));
  return {
    client,
    repeats: storedRepeats(context.governor, context.who),
    // A request sees one list: who wants to hear of changes asks again.
    permissions: permissionWatch(client, () => {}),
    waitMs: MOST_WAIT_MS,
  };
}
