/** An MCP server on loopback, built with the official SDK, that a test can change while clients use it. */
import { createServer, type IncomingMessage } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { listenOnLoopback } from '../listen.ts';

export type TestTool = {
  name: string;
  title?: string;
  description?: string;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean };
  /** Returns the result; by default the arguments as JSON. */
  run?: (args: Record<string, unknown>, request: IncomingMessage) => unknown;
};

export type TestMcp = {
  /** Its address, including `/mcp`. */
  url: string;
  /** `127.0.0.1:port` */
  address: string;
  tools: TestTool[];
  /** Every received request: its JSON-RPC method (or the HTTP one), headers and parameters. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  seen: { rpc: string; headers: IncomingMessage['headers']; params: any }[];
  /** Deletes all sessions, as a restart does; requests that name one are answered with `status`, 404 by default. */
  forget(status?: number): void;
  close(): Promise<void>;
};

/**
 * `both`: stateless requests and those after `initialize`. `handshake`: only the latter. `sessions`: the latter, with a session that clients have to
 * name.
 */
export type Manner = 'both' | 'handshake' | 'sessions';

const ANY = z.looseObject({});

/** Starts a server with a tool that reads, one that writes, one that destroys and one without annotations. */
export async function startMcpServer(manner: Manner = 'both'): Promise<TestMcp> {
  const make = (request: IncomingMessage) => {
    const server = new McpServer({ name: 'test-server', version: '1.0.0' });
    for (const { name, title, description = `Does ${name}`, annotations, run } of mcp.tools)
      server.registerTool(
        name,
        { description, inputSchema: ANY, ...(title !== undefined && { title }), ...(annotations && { annotations }) },
        (args) => ({
          content: [{ type: 'text', text: JSON.stringify(run ? run(args, request) : args) }],
          structuredContent: { name, args },
        }),
      );
    return server;
  };
  const sessions = new Map<string, NodeStreamableHTTPServerTransport>();
  let statusOfLost = 404;
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : undefined;
    mcp.seen.push({ rpc: body?.method ?? request.method, headers: request.headers, params: body?.params });
    if (manner === 'both') {
      const handler = createMcpHandler(() => make(request));
      return void (await toNodeHandler(handler)(request as never, response, body));
    }
    const known = sessions.get(String(request.headers['mcp-session-id']));
    if (known) return void (await known.handleRequest(request, response, body));
    if (manner === 'sessions' && body?.method !== 'initialize') {
      const status = request.headers['mcp-session-id'] === undefined ? 400 : statusOfLost;
      response.writeHead(status, { 'content-type': 'application/json' });
      const error = { code: -32_000, message: 'no session' };
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: manner === 'sessions' ? () => crypto.randomUUID() : undefined,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await make(request).connect(transport);
    await transport.handleRequest(request, response, body);
  });
  const port = await listenOnLoopback(http);
  const mcp: TestMcp = {
    url: `http://127.0.0.1:${port}/mcp`,
    address: `127.0.0.1:${port}`,
    tools: [
      { name: 'search_issues', annotations: { readOnlyHint: true } },
      { name: 'write_issue', title: 'Write an issue', annotations: { readOnlyHint: false, destructiveHint: false } },
      { name: 'drop_issues', annotations: { destructiveHint: true } },
      { name: 'do_whatever' },
    ],
    seen: [],
    forget: (status = 404) => {
      statusOfLost = status;
      sessions.clear();
    },
    close: () => {
      http.closeAllConnections();
      return new Promise((resolve) => http.close(() => resolve()));
    },
  };
  return mcp;
}
