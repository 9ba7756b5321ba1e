/** Our client for MCP servers as a program for the conformance suite: lists the tools of a server and calls them. */
import { listAll } from '../../broker/calls/mcp-list.ts';
import { Secret } from '../../broker/crypto/secret.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { makeMcpClient } from '../../broker/egress/mcp-client.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';

const baseUrl = process.argv.at(-1)!;
const outbound = makeOutbound({ allowPrivate: [new URL(baseUrl).host] });
const client = makeMcpClient(
  outbound,
  {
    platform: { baseUrl, wholeAddress: true, auth: { type: 'header', name: 'x-test-credential' } },
    credential: new Secret('nobodys-credential'),
    clock: Date.now,
    connectionKey: 'test',
    headers: {},
    session: undefined,
  },
  '1.0.0',
);

/** Returns arguments for a tool: the suite's own, or a value of each argument's type. */
function argumentsOf(tool: JsonObject, first: JsonObject): JsonObject {
  const { properties = {} } = tool.inputSchema as { properties?: Record<string, { type?: string }> };
  const sample: Record<string, JsonObject[string]> = {
    number: 3,
    integer: 3,
    boolean: true,
    string: 'text',
    object: first,
  };
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type = 'string' }]) => [name, sample[type] ?? 'x']),
  );
}

const context = process.env.MCP_CONFORMANCE_CONTEXT;
const asked =
  context === undefined ? undefined : (JSON.parse(context).toolCalls as { name: string; arguments: JsonObject }[]);
const listed = await listAll(client);
if (!listed.ok) console.error('not listed', JSON.stringify(listed.answer));
else
  for (const tool of listed.tools) {
    const mine = asked?.filter(({ name }) => name === tool.name);
    for (const { arguments: args } of mine ?? [
      { arguments: argumentsOf(tool, listed.tools[0]!.inputSchema as JsonObject) },
    ]) {
      const answer = await client.call({ name: String(tool.name), inputSchema: tool.inputSchema }, args, () => ({}));
      console.log(tool.name, 'kind' in answer ? answer.kind : answer.error);
    }
  }
await outbound.close();
