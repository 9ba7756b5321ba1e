/** Client capabilities of an SDK request: from its envelope since 2026-07-28, from the handshake before. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  inputResponse,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { TASKS_EXTENSION } from './introduction.ts';
import type { Link, ToolRequest } from './peer.ts';

/** Time for a person to read and respond. The request is cancelled when the call is decided. */
const DIALOG_TIMEOUT_MS = 600_000;

/** Matches the current version of W3C Trace Context and later, longer ones. The value becomes a header. */
const TRACEPARENT = /^[0-9a-f-]{55,256}$/;

/** `opensByError`: the client declared in another handshake that it opens links, but it does not answer requests. */
export function requestOf(server: Server, context: ServerContext, opensByError: boolean): ToolRequest {
  const { mcpReq } = context;
  const declared = declaredWith(context);
  const stateless = declared !== undefined;
  const capabilities = declared ?? server.getClientCapabilities() ?? {};
  const opens = capabilities.elicitation?.url !== undefined;
  const token = mcpReq._meta?.progressToken;
  const traceparent = mcpReq._meta?.traceparent;
  const state = mcpReq.requestState<string>();
  const response = inputResponse(mcpReq.inputResponses, 'approval');
  return {
    takesTasks: stateless && capabilities.extensions?.[TASKS_EXTENSION] !== undefined,
    opensLinks: opens ? (stateless ? 'by_result' : 'by_request') : opensByError ? 'by_error' : 'no',
    traceparent: typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : undefined,
    signal: mcpReq.signal,
    progress: async (message, secondsWaited) => {
      if (token === undefined) return;
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: token, progress: secondsWaited, message },
      });
    },
    resumed: typeof state === 'string' && response.kind === 'elicit' ? { state, action: response.action } : undefined,
    ...(opens && !stateless && { openLink: (link, signal) => openLink(server, link, signal) }),
  };
}

/** The capabilities in a request of 2026-07-28; undefined with a handshake. */
export function declaredWith({ mcpReq }: ServerContext): ClientCapabilities | undefined {
  const envelope = mcpReq.envelope as Readonly<Record<string, ClientCapabilities | undefined>> | undefined;
  return envelope?.[CLIENT_CAPABILITIES_META_KEY];
}

/** Opens a link in the dialog of handshake clients (2025-11-25): ended by the person, or by the signal, which also completes the elicitation. */
async function openLink(server: Server, { id, url, message }: Link, signal: AbortSignal) {
  const params = { mode: 'url' as const, elicitationId: id, url, message };
  try {
    return (await server.elicitInput(params, { signal, timeout: DIALOG_TIMEOUT_MS })).action;
  } finally {
    if (signal.aborted)
      await server
        .createElicitationCompletionNotifier(id)()
        .catch(() => {});
  }
}
