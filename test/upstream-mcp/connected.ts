/** An organisation with an MCP server as its platform `tools`, and an agent that is granted all its scopes. */
import { Secret } from '../../broker/crypto/secret.ts';
import type { McpTarget } from '../../broker/egress/mcp/client.ts';
import type { TestAgent } from '../world/agent.ts';
import type { TestMcp } from '../world/mcp/server.ts';
import type { Organisation, World } from '../world/world.ts';

export const SCOPES = {
  'tools:search.read': ['tool search_*'],
  'tools:write': ['tool write_*', 'tool do_whatever'],
  'tools:drop': ['tool drop_*'],
};

export async function connected(
  world: World,
  mcp: Pick<TestMcp, 'url'>,
  manifest: object = {},
  rules: readonly unknown[] = [{ effect: 'allow' }],
): Promise<{ organisation: Organisation; agent: TestAgent }> {
  const organisation = await world.organisation();
  const whole = { kind: 'mcp', base_url: mcp.url, scopes: SCOPES, ...manifest };
  await organisation.platform({ id: 'tools', manifest: whole });
  const policy = await organisation.policy(rules);
  const agent = await organisation.agent({ policy, grants: { tools: { scopeList: Object.keys(SCOPES) } } });
  return { organisation, agent };
}

export const callOf = (tool: string, scope: string, data: object = {}) => ({
  platform: 'tools',
  endpoint: `/tools/${tool}`,
  method: 'POST',
  scope,
  data,
});
export const SEARCH = callOf('search_issues', 'tools:search.read', { query: 'open' });

/** Returns a server as target of the MCP client, without a governed call. */
export const targetAt = (baseUrl: string): McpTarget => ({
  platform: { baseUrl, wholeAddress: true, auth: { type: 'bearer' } },
  credential: new Secret('not-a-secret-at-all'),
  clock: Date.now,
  connectionKey: 'a',
  headers: {},
  session: undefined,
});
