/** `agent-broker mcp`: the tools of one agent over standard input and output. */
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { agentClient } from '../client/agent-client.ts';
import type { Send } from '../client/send.ts';
import { permissionWatch } from '../tools/permission-watch.ts';
import type { Repeats } from '../tools/repeats.ts';
import { toolServer } from '../tools/tool-server.ts';
import type { Written } from '../tools/write-once.ts';
import { lineTransport } from './line-transport.ts';

type Given = {
  send: Send;
  repeats: Repeats;
  waitMs: number;
  version: string;
  /** What went wrong, for the person who reads the client's log. */
  tell: (text: string) => void;
};

/** How often the broker is asked whether the agent may do something else now: a 304, as a rule. */
const LOOK_EVERY_MS = 60_000;

/** Serves until standard input ends. */
export function serveTools({ send, repeats, waitMs, version, tell }: Given): void {
  const client = agentClient(send);
  const underway = new Map<string, Promise<Written>>();
  const servers = new Set<ReturnType<typeof toolServer>>();
  const report = (error: Error) => tell(error.message);
  const permissions = permissionWatch(client, () => {
    for (const server of servers) server.sendToolListChanged().catch(report);
  });
  // Asked while the client still shakes hands, so that the first list has it.
  permissions.refreshSoon();
  const looking = setInterval(permissions.refreshSoon, LOOK_EVERY_MS);
  const transport = lineTransport(process.stdin, process.stdout);
  serveStdio(
    () => {
      const server = toolServer({ client, repeats, underway, permissions, waitMs }, { version, tellsChanges: true });
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
    clearInterval(looking);
    onclose?.();
  };
}
