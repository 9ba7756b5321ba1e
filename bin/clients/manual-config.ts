/** The configuration for an MCP client that `agent-broker connect` does not support. */
import { PROGRAM } from '../program-name.ts';
import { SERVER_NAME, type ServerEntry } from '../server-entry.ts';

/** Instructions for the person. `entry` has FILE as placeholder for the profile. */
export const manualInstructions = (entry: ServerEntry): string =>
  `Make an agent with: ${PROGRAM} agent create NAME\nThen give the client this server, with the path of the agent's profile for FILE; most take it like this:\n${manualEntry(entry, 2)}`;

/** The server entry in the format of most clients; on one line, unless `indent` says how many spaces. */
export const manualEntry = (entry: ServerEntry, indent?: number): string =>
  JSON.stringify({ mcpServers: { [SERVER_NAME]: entry } }, null, indent);
