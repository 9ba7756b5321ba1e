/** The tools as an MCP server, for any transport and both protocol eras: the factory for the SDK's entry points. */

import {
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { listTools, TOOL_NAMES } from './catalog.ts';
import { answerResult, type HeldCallResult } from './handed.ts';
import { introduction, TASKS_EXTENSION } from './introduction.ts';
import { errorAnswer } from './outcome-answer.ts';
import { declaredWith, requestOf } from './request-of.ts';
import { runTool } from './run-tool.ts';
import { cancelTask, getTask, taskCreated } from './tasks.ts';
import type { ToolHost } from './tool-host.ts';

/** Timeout for the permissions in the first list, where `tools/list_changed` follows if the broker answers later. */
const LIST_TIMEOUT_MS = 350;

/** Advice after an unexpected error. Writes are stored before they are submitted, so an identical write is the same call. */
const AGAIN =
  'Try again with exactly the same arguments: that is safe, because a call that writes is made at most once. If it fails again, tell the person you work for.';

const TaskId = { params: z.object({ taskId: z.string() }) };

/** Options of the server. */
export type Served = {
  version: string;
  /** Whether the transport can notify the client of a changed list. */
  tellsChanges: boolean;
  /** Whether the client speaks revision 2026-07-28, in which held calls can become tasks. */
  withTasks: boolean;
  /** The client is not allowed to read its agent's permissions: the tools are listed without them. */
  untold?: boolean;
  /** The client declared in the handshake of another request that it opens links. */
  opensByError?: boolean;
  /** Timeout for the permissions in a list, after which the tools are listed without them. */
  listPatienceMs?: number;
};

/** One server for each connection, or for each request of a stateless transport. */
export function toolServer(
  host: ToolHost,
  { version, tellsChanges, withTasks, untold = false, opensByError = false, listPatienceMs = LIST_TIMEOUT_MS }: Served,
): Server {
  const { serverInfo, ...offered } = introduction(version, { tellsChanges, withTasks });
  const server = new Server(serverInfo, offered);

  server.setRequestHandler('tools/list', async () => ({
    tools: listTools(untold ? 'untold' : await host.permissions.soon(listPatienceMs)),
  }));

  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const request = requestOf(server, context, opensByError);
    const handed = await runTool(host, request, params.name, params.arguments).catch((error: unknown) => {
      if (error instanceof ProtocolError || request.signal.aborted) throw error;
      return answerResult(errorAnswer(host.failed(error), false, () => AGAIN));
    });
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
  // Our tasks never request input; other updates are ignored, as the extension says.
  server.setRequestHandler('tasks/update', TaskId, ({ taskId }, context) => {
    demandTasks(context);
    return cancelTask(host, taskId);
  });
  return server;
}

function resultOf(handed: HeldCallResult): Result {
  if (handed.kind === 'answer') return handed.answer;
  if (handed.kind === 'task') return taskCreated(handed);
  if (handed.kind === 'link_first') throw linkFirst(handed);
  const { id, url, message } = handed;
  // The revision 2026-07-28 has no id there, but the Rust SDK (rmcp 3.1) does not read a link without an id.
  const params = { mode: 'url' as const, elicitationId: id, url, message };
  return inputRequired({
    inputRequests: { approval: { method: 'elicitation/create', params } },
    requestState: handed.state,
  });
}

/** The error of 2025-11-25. Clients that do not support it show its message, which says what to do. */
const linkFirst = ({
  id,
  url,
  message,
  words,
}: Extract<HeldCallResult, { kind: 'link_first' }>): UrlElicitationRequiredError =>
  new UrlElicitationRequiredError([{ mode: 'url', elicitationId: id, url, message }], words);

/** These methods require that the client declares the extension in the request (Tasks, Protocol Errors). */
function demandTasks(context: ServerContext): void {
  if (declaredWith(context)?.extensions?.[TASKS_EXTENSION] === undefined)
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } });
}
