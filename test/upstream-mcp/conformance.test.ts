/**
 * The conformance suite for MCP clients against the client that calls MCP platforms. Unsupported scenarios are listed
 * with the reason; any other failure fails here, and so does a listed scenario that passes.
 */
import { beforeAll, test } from 'vitest';
import { listAll } from '../../broker/calls/mcp/list.ts';
import { Secret } from '../../broker/crypto/secret.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { makeMcpClient } from '../../broker/egress/mcp/client.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { type Expected, runAllScenarios } from '../world/mcp/conformance.ts';

const SCENARIOS: Record<string, Expected> = {
  tools_call: { passes: ['tool-add-numbers'] },
  'request-metadata': {
    passes: [
      'sep-2575-http-client-sends-version-header',
      'sep-2575-client-populates-meta',
      'sep-2575-client-retry-supported-version',
    ],
  },
  'http-standard-headers': { passes: ['sep-2243-client-includes-standard-headers'] },
  'http-custom-headers': {
    passes: ['sep-2243-client-mirrors-designated-params', 'sep-2243-client-base64-unsafe', 'sep-2243-client-omit-null'],
  },
  'http-invalid-tool-headers': {
    passes: ['sep-2243-client-reject-invalid-tool', 'sep-2243-x-mcp-header-unique', 'sep-2243-x-mcp-header-charset'],
  },
  'json-schema-ref-no-deref': { passes: ['sep-2106-no-network-ref-deref'] },
  'json-schema-2020-12-preservation': { passes: ['json-schema-2020-12-client-$defs-preserved'] },
  'sse-retry': { passes: ['client-sse-graceful-reconnect', 'client-sse-retry-timing', 'client-sse-last-event-id'] },
  'sep-2322-client-request-state': {
    passes: ['sep-2322-client-parallel-isolation', 'sep-2322-default-result-type-complete'],
    cannot: {
      'sep-2322-client-request-state-echoed': 'a tool that asks back is refused: nobody here answers it',
      'sep-2322-client-jsonrpc-id-different': 'the same',
      'sep-2322-client-no-state-omitted': 'the same',
    },
  },
};

let judge: (scenario: string, expected: Expected) => void;
beforeAll(async () => {
  judge = await runAllScenarios(async (scenario, url, context) =>
    scenario in SCENARIOS ? await listAndCall(url, context) : 'not of the client for tools',
  );
}, 180_000);

test.each(Object.entries(SCENARIOS))('%s', (scenario, expected) => judge(scenario, expected));

/** Lists the tools of a server and calls them: as the context asks, or with values of the types of their arguments. */
async function listAndCall(baseUrl: string, context: string | undefined): Promise<unknown> {
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
  try {
    const asked =
      context === undefined ? undefined : (JSON.parse(context).toolCalls as { name: string; arguments: JsonObject }[]);
    const listed = await listAll(client);
    if (!listed.ok) return { notListed: listed.answer };
    const results: unknown[] = [];
    for (const tool of listed.tools) {
      const mine = asked?.filter(({ name }) => name === tool.name);
      for (const { arguments: args } of mine ?? [
        { arguments: argumentsOf(tool, listed.tools[0]!.inputSchema as JsonObject) },
      ]) {
        const answer = await client.call({ name: String(tool.name), inputSchema: tool.inputSchema }, args, () => ({}));
        results.push([tool.name, 'kind' in answer ? answer.kind : answer.error]);
      }
    }
    return results;
  } finally {
    await outbound.close();
  }
}

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
