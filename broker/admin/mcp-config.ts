import type { Broker } from '../broker.ts';

/** What a person replaces: the configuration is made where the private key is not. */
const KEY_PLACE = '<the private key, or the path of its file>';

/** What an MCP client's configuration takes to reach the broker as this agent (docs/agents.md, Registering). */
export const mcpConfig = ({ baseUrl }: Pick<Broker, 'baseUrl'>, agent: { agentId: string; ownerId: string }) => ({
  mcpServers: {
    'agent-broker': {
      command: 'npx',
      args: ['-y', 'agent-broker', 'mcp'],
      env: {
        AGENT_BROKER_URL: baseUrl,
        AGENT_BROKER_AGENT_ID: agent.agentId,
        AGENT_BROKER_OWNER_ID: agent.ownerId,
        AGENT_BROKER_PRIVATE_KEY: KEY_PLACE,
      },
    },
  },
});
