/** `agent-broker mcp`: serves the tools of one agent over stdio with the SDK. */
import type { Writable } from 'node:stream';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Caller } from '../client/action.ts';
import { BrokerError } from '../client/broker-error.ts';
import type { PermissionWatch } from '../tools/permission-watch.ts';
import { personKeyAsNamed } from '../tools/person-key.ts';
import { type Repeats, repeatsInMemory } from '../tools/repeats.ts';
import type { ToolClient } from '../tools/tool-client.ts';
import { toolServer } from '../tools/tool-server.ts';
import type { Written } from '../tools/written.ts';
import type { FirstLines } from './first-answers.ts';
import { lineTransport } from './line-transport.ts';
import { repeatsOnDisk } from './repeats-on-disk.ts';
import { tolerantRepeats } from './tolerant-repeats.ts';

type Given = {
  client: ToolClient;
  permissions: PermissionWatch;
  repeats: Repeats;
  configured: (() => Caller) | undefined;
  waitMs: number;
  version: string;
  /** Reports errors in the client's log. */
  report: (error: Error) => void;
  /** Called when the client has disconnected. */
  ended: () => void;
};

/** Serves until the lines end. Returns the function that notifies the client of a changed list of tools. */
export function serveTools(lines: FirstLines, output: Writable, given: Given): () => void {
  const { client, permissions, repeats, configured, waitMs, version, report, ended } = given;
  const failed = (error: unknown) => {
    report(error as Error);
    return new BrokerError('internal_error', `The MCP server failed: ${(error as Error).message}`);
  };
  const underway = new Map<string, Promise<Written>>();
  const personKey = personKeyAsNamed;
  const host = { client, repeats, underway, permissions, waitMs, configured, personKey, failed };
  const servers = new Set<ReturnType<typeof toolServer>>();
  const transport = lineTransport(lines, output);
  serveStdio(
    ({ era }) => {
      const server = toolServer(host, { version, tellsChanges: true, withTasks: era === 'modern' });
      servers.add(server);
      server.onclose = () => {
        servers.delete(server);
      };
      return server;
    },
    { transport, onerror: report },
  );
  const { onclose } = transport;
  transport.onclose = () => {
    ended();
    onclose?.();
  };
  return () => {
    for (const server of servers) server.sendToolListChanged().catch(report);
  };
}

/** Pending calls in a folder of the agent's own; in memory if it cannot be written. */
export const rememberedIn = (folder: string, tell: (text: string) => void): Repeats =>
  tolerantRepeats(repeatsOnDisk(folder), repeatsInMemory(), ({ message }) =>
    tell(`Pending calls cannot be stored in ${folder}, so they are lost when this process ends: ${message}`),
  );
