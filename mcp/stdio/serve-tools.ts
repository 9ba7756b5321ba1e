/** `agent-broker mcp`: the tools of one agent over standard input and output. */
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { agentClient } from '../client/agent-client.ts';
import type { Send } from '../client/send.ts';
import { type PermissionWatch, permissionWatch } from '../tools/permission-watch.ts';
import type { Repeats } from '../tools/repeats.ts';
import { toolServer } from '../tools/tool-server.ts';

type Given = { send: Send; url: string; repeats: Repeats; version: string; onerror: (error: Error) => void };

/** How often the broker is asked whether the agent may do something else now: a 304, as a rule. */
const LOOK_EVERY_MS = 60_000;

/** Serves until standard input ends. */
export function serveTools({ send, url, repeats, version, onerror }: Given): void {
  const client = agentClient(send, { url });
  const servers = new Set<ReturnType<typeof toolServer>>();
  const tell = () => {
    for (const server of servers) server.sendToolListChanged().catch(onerror);
  };
  const permissions: PermissionWatch = permissionWatch(client, tell);
  // Asked while the client still shakes hands, so that the first list has it.
  permissions.refreshSoon();
  setInterval(permissions.refreshSoon, LOOK_EVERY_MS).unref();
  serveStdio(
    () => {
      const server = toolServer({ client, repeats, permissions }, { version });
      servers.add(server);
      server.onclose = () => servers.delete(server);
      return server;
    },
    { onerror },
  );
}
