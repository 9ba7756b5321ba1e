/** MCP clients that `agent-broker connect` cannot configure, with manual instructions. */
import { commandLine, SERVER_NAME, type ServerEntry } from './server-entry.ts';

type ByHand = {
  title: string;
  /** `windows`: words are quoted for its shell. */
  how: (entry: ServerEntry, windows: boolean) => string;
};

/** The entry in JSON, below a member of this name. */
const json = (member: string, entry: object): string => JSON.stringify({ [member]: { [SERVER_NAME]: entry } }, null, 2);

const TABLE: Record<string, ByHand> = {
  // github.com/openai/codex, docs/config.md
  codex: {
    title: 'Codex',
    how: ({ command, args, env }, windows) =>
      `run: codex mcp add ${SERVER_NAME} --env ${commandLine([`AGENT_BROKER_PROFILE=${env.AGENT_BROKER_PROFILE}`], windows)} -- ${commandLine([command, ...args], windows)}`,
  },
  // docs.continue.dev, config.yaml reference. JSON is YAML, too.
  continue: {
    title: 'Continue',
    how: (entry) =>
      `add to "mcpServers" in ~/.continue/config.yaml:\n- ${JSON.stringify({ name: SERVER_NAME, ...entry })}`,
  },
  // zed.dev/docs/ai/mcp
  zed: {
    title: 'Zed',
    how: (entry) => `add to ~/.config/zed/settings.json:\n${json('context_servers', entry)}`,
  },
  // docs.windsurf.com, Cascade MCP
  windsurf: {
    title: 'Windsurf',
    how: (entry) => `add to ~/.codeium/windsurf/mcp_config.json:\n${json('mcpServers', entry)}`,
  },
  // docs.cline.bot, MCP servers
  cline: {
    title: 'Cline',
    how: (entry) => `add in MCP Servers, Configure (cline_mcp_settings.json):\n${json('mcpServers', entry)}`,
  },
};

/** Instructions for a client that `connect` does not support. `entry`: with FILE as placeholder for the profile. */
export function byHand(client: string, entry: ServerEntry, platform: NodeJS.Platform): string {
  const known = Object.hasOwn(TABLE, client) ? TABLE[client] : undefined;
  const made = `Make an agent with: agent-broker agent create NAME`;
  if (known)
    return `The configuration of ${known.title} is not changed by this program. ${made}\nThen, with the path of its profile for FILE, ${known.how(entry, platform === 'win32')}`;
  return `${made}\nThen give the client this server, with the path of the agent's profile for FILE; most take it under "mcpServers":\n${JSON.stringify({ [SERVER_NAME]: entry }, null, 2)}`;
}
