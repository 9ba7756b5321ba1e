/** The MCP server behind `/mcp`: one for each request, of the agent that asks. */
import { McpServer } from '@modelcontextprotocol/server';
import type { Governor } from '../calls/governor.ts';
import { toWirePermissions } from '../decision/permissions.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import { ALL_PLATFORMS } from '../store/facts.ts';

/** Makes it. `version`: of this build. */
export function makeMcpServer(governor: Governor, who: AgentPrincipal, version: string): McpServer {
  const server = new McpServer({ name: 'agent-broker', title: 'Agent Broker', version });
  server.registerTool(
    'list_permissions',
    { description: 'What this agent may do now.', annotations: { readOnlyHint: true } },
    async () => {
      const rows = await governor.facts(who.agent.agent_id, ALL_PLATFORMS, who.source);
      const { platforms, version } = await governor.permissions(governor, { ...who, rows, agent: rows[0]! });
      const now = governor.broker.clock();
      const data = { platforms: platforms.map((one) => toWirePermissions(one, now)), version };
      return { content: [{ type: 'text', text: JSON.stringify(data) }] };
    },
  );
  return server;
}
