/**
 * The conformance suite for MCP clients against the client that calls MCP platforms. Unsupported scenarios are listed
 * with the reason; any other failure fails here, and so does a listed scenario that passes.
 */
import { join } from 'node:path';
import { test } from 'vitest';
import { conforms, type Expected } from '../world/conformance.ts';

const CLIENT = join(import.meta.dirname, '../world/mcp-client-program.ts');

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

test.each(Object.entries(SCENARIOS))('%s', (scenario, expected) => conforms(scenario, CLIENT, expected), 90_000);
