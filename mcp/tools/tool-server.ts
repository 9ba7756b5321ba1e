/** The tools as an MCP server, for any transport and both protocol eras: the factory that the SDK's entries want. */

import { z } from 'zod';
import {
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  UrlElicitationRequiredError,
} from '../../bundled/mcp-server.ts';
import type { Handed } from './call-platform.ts';
import { listTools, TOOL_NAMES } from './catalog.ts';
import { waitingNews } from './hold.ts';
import { introduction, TASKS_EXTENSION } from './introduction.ts';
import { declaredWith, requestOf } from './request-of.ts';
import { runTool } from './run-tool.ts';
import { cancelTask, getTask, taskCreated } from './tasks.ts';
import type { ToolHost } from './tool-host.ts';

/** A client waits for the list while it starts: what the broker does not tell by then is told as a change. */
const LIST_PATIENCE_MS = 350;

const TaskId = { params: z.object({ taskId: z.string() }) };

/** What the tools are served over. */
export type Served = {
  version: string;
  /** Whether there is a way on which the client can be told that the list changed. */
  tellsChanges: boolean;
  /** The client may not learn what its agent may do: the tools are listed without it. */
  untold?: boolean;
  /** A client that shook hands with another server of this connection said there that it opens links. */
  opensByError?: boolean;
};

/** One server for one connection, or for one request where the transport keeps no connection. */
export function toolServer(
  host: ToolHost,
  { version, tellsChanges, untold = false, opensByError = false }: Served,
): Server {
  const { serverInfo, ...offered } = introduction(version, tellsChanges);
  const server = new Server(serverInfo, offered);

  server.setRequestHandler('tools/list', async () => ({
    tools: listTools(untold ? 'untold' : await host.permissions.soon(LIST_PATIENCE_MS)),
  }));

  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const handed = await runTool(host, requestOf(server, context, opensByError), params.name, params.arguments);
    if (handed === undefined)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool ${JSON.stringify(params.name)}. The tools are: ${TOOL_NAMES.join(', ')}.`,
      );
    return resultOf(handed) as never;
  });

  server.setRequestHandler('tasks/get', TaskId, ({ taskId }, context) => {
    demandTasks(context);
    return getTask(host, taskId);
  });
  server.setRequestHandler('tasks/cancel', TaskId, ({ taskId }, context) => {
    demandTasks(context);
    return cancelTask(host, taskId);
  });
  // No task of ours ever asks for input; what answers nothing is ignored, as the extension says.
  server.setRequestHandler('tasks/update', TaskId, ({ taskId }, context) => {
    demandTasks(context);
    return cancelTask(host, taskId);
  });
  return server;
}

function resultOf(handed: Handed): Result {
  if (handed.kind === 'answer') return handed.answer;
  if (handed.kind === 'task') return taskCreated(handed);
  if (handed.kind === 'link_first') throw linkFirst(handed);
  return inputRequired({
    inputRequests: { approval: inputRequired.elicitUrl({ message: waitingNews(undefined), url: handed.url }) },
    requestState: handed.state,
  });
}

/** The error of 2025-11-25. A client that knows no better shows its words, which say all that there is to do. */
function linkFirst({ approvalId, url }: Extract<Handed, { kind: 'link_first' }>): UrlElicitationRequiredError {
  const message = waitingNews(undefined);
  return new UrlElicitationRequiredError(
    [{ mode: 'url', elicitationId: approvalId, url, message }],
    `The call is held until a person decides at ${url} and nothing was sent yet. Show them the link, then make the very same ` +
      `call once more: it is not submitted twice, and waits for the decision. Or call check_approval with approval_id "${approvalId}".`,
  );
}

/** Those methods are for clients that declare the extension with the request (Tasks, Protocol Errors). */
function demandTasks(context: ServerContext): void {
  if (declaredWith(context)?.extensions?.[TASKS_EXTENSION] === undefined)
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } });
}
