import type { Broker } from '../broker.ts';

/** A placeholder: the configuration is generated where the private key is not known. */
const KEY_PLACE = '<the private key, or the path of its file>';

/** Returns the configuration with which an MCP client reaches the broker as this agent (docs/agents.md, Registering). */
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
