/** What an MCP client that `agent-broker connect` does not know wants. */
import { SERVER_NAME, type ServerEntry } from './server-entry.ts';

/** Instructions. `entry`: with FILE as placeholder for the profile. */
export const byHand = (entry: ServerEntry): string =>
  `Make an agent with: agent-broker agent create NAME\nThen give the client this server, with the path of the agent's profile for FILE; most take it under "mcpServers":\n${JSON.stringify({ [SERVER_NAME]: entry }, null, 2)}`;
