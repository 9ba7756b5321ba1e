/** A client with the tasks extension: the extension's own requester beside a client of the SDK, whose wire format has no tasks. */

import { setTimeout } from 'node:timers/promises';
import { type Client, type JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createTaskSessionFromClient,
  type JsonRpcResponse,
  type RawClientDispatch,
  type TaskEnabledSession,
} from '@modelcontextprotocol/ext-tasks/client';
import { onTestFinished } from 'vitest';
import type { World } from '../world.ts';
import type { ClientMemory } from './person.ts';

const REVISION = '2026-07-28';

/** Returns a session for a client that is connected in that revision, with its tokens. Ends with the test. */
export async function taskSession(world: World, client: Client, memory: ClientMemory): Promise<TaskEnabledSession> {
  const url = new URL(`${world.running.baseUrl}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { authProvider: memory, protocolVersion: REVISION });
  const waiting = new Map<string, (answer: JsonRpcResponse) => void>();
  transport.onmessage = (message) => {
    if ('id' in message && !('method' in message)) waiting.get(String(message.id))?.(answerOf(message));
  };
  await transport.start();
  const rawDispatch: RawClientDispatch = async (request, { signal } = {}) => {
    const id = crypto.randomUUID();
    const answered = Promise.withResolvers<JsonRpcResponse>();
    waiting.set(id, answered.resolve);
    const message = { jsonrpc: '2.0', id, ...(request as object) } as JSONRPCMessage;
    await sendAgain(() => transport.send(message, { ...(signal && { requestSignal: signal }) }));
    return await answered.promise;
  };
  const session = createTaskSessionFromClient(client, {
    endpointId: url.href,
    rawDispatch,
    v2RequestFraming: {
      protocolVersion: REVISION,
      clientInfo: { name: 'tasks', version: '1' },
      clientCapabilities: { elicitation: { url: {} } },
    },
  });
  onTestFinished(async () => {
    await session.close();
    await transport.close();
  });
  return session;
}

/** Retries while there is no connection: the extension ends a task at the first failed request, and tests kill the broker meanwhile. */
async function sendAgain(sending: () => Promise<void>): Promise<void> {
  for (const end = Date.now() + 60_000; ; await setTimeout(250))
    try {
      return await sending();
    } catch (error) {
      // fetch() throws a TypeError when there is no answer; other errors are reported.
      if (!(error instanceof TypeError) || Date.now() > end) throw error;
    }
}

const answerOf = (message: JSONRPCMessage): JsonRpcResponse =>
  ('error' in message
    ? { kind: 'error', error: message.error }
    : { kind: 'result', result: (message as { result: unknown }).result }) as JsonRpcResponse;
