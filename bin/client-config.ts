/** Location and format of each MCP client's list of servers, by platform and environment. */
import { posix, win32 } from 'node:path';
import { plainEntry, type ServerEntry, type Started } from './server-entry.ts';

export const CLIENTS = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'gemini', 'opencode'] as const;
export type ClientId = (typeof CLIENTS)[number];

/** The machine of a client. `home`: the user's. `cwd`: the project's. */
export type Machine = {
  platform: NodeJS.Platform;
  environment: Readonly<Record<string, string | undefined>>;
  home: string;
  cwd: string;
};

type Place = 'user' | 'project';

type Client = {
  title: string;
  /** The member of the file that lists the servers. */
  member: 'mcpServers' | 'servers' | 'mcp';
  /** The entry in the client's format. */
  write: (entry: ServerEntry) => object;
  /** Undefined: the client has no such file. */
  file: (machine: Machine, place: Place) => string | undefined;
  /** What to do afterwards. */
  afterwards: string;
};

const pathsOf = ({ platform }: Machine) => (platform === 'win32' ? win32 : posix);

/** The folder for settings of programs. */
function settings(machine: Machine): string {
  const { platform, environment, home } = machine;
  const { join } = pathsOf(machine);
  if (platform === 'win32') return environment.APPDATA || join(home, 'AppData', 'Roaming');
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  return environment.XDG_CONFIG_HOME || join(home, '.config');
}

const asItIs = (entry: ServerEntry): object => entry;
/** Adds the type of a stdio server. */
const withType = (entry: ServerEntry): object => ({ type: 'stdio', ...entry });

const TABLE: Record<ClientId, Client> = {
  // code.claude.com/docs/en/mcp: user scope, and project scope in the project's root.
  'claude-code': {
    title: 'Claude Code',
    member: 'mcpServers',
    write: withType,
    file: (machine, place) => {
      const { join } = pathsOf(machine);
      if (place === 'project') return join(machine.cwd, '.mcp.json');
      return join(machine.environment.CLAUDE_CONFIG_DIR || machine.home, '.claude.json');
    },
    afterwards: 'Restart Claude Code; /mcp shows the server.',
  },
  // modelcontextprotocol.io, Connect to local MCP servers.
  'claude-desktop': {
    title: 'Claude Desktop',
    member: 'mcpServers',
    write: asItIs,
    file: (machine, place) =>
      place === 'project'
        ? undefined
        : pathsOf(machine).join(settings(machine), 'Claude', 'claude_desktop_config.json'),
    afterwards: 'Quit Claude Desktop (closing its window is not enough) and start it again.',
  },
  // docs.cursor.com/context/model-context-protocol
  cursor: {
    title: 'Cursor',
    member: 'mcpServers',
    write: asItIs,
    file: (machine, place) =>
      pathsOf(machine).join(place === 'project' ? machine.cwd : machine.home, '.cursor', 'mcp.json'),
    afterwards: 'Cursor asks whether to enable the server, or shows it in Settings, under MCP.',
  },
  // code.visualstudio.com/docs/copilot/reference/mcp-configuration
  vscode: {
    title: 'VS Code',
    member: 'servers',
    write: withType,
    file: (machine, place) => {
      const { join } = pathsOf(machine);
      if (place === 'project') return join(machine.cwd, '.vscode', 'mcp.json');
      return join(settings(machine), 'Code', 'User', 'mcp.json');
    },
    afterwards: 'VS Code asks whether to trust the server when it starts it (command: MCP: List Servers).',
  },
  // github.com/google-gemini/gemini-cli, docs/tools/mcp-server.md
  gemini: {
    title: 'Gemini CLI',
    member: 'mcpServers',
    write: asItIs,
    file: (machine, place) =>
      pathsOf(machine).join(place === 'project' ? machine.cwd : machine.home, '.gemini', 'settings.json'),
    afterwards: 'Restart Gemini CLI; /mcp shows the server.',
  },
  // opencode.ai/docs/mcp-servers and opencode.ai/docs/config: one list of words, and `environment`.
  opencode: {
    title: 'opencode',
    member: 'mcp',
    write: ({ command, args, env }) => ({
      type: 'local',
      enabled: true,
      command: [command, ...args],
      environment: env,
    }),
    file: (machine, place) => {
      const { join } = pathsOf(machine);
      if (place === 'project') return join(machine.cwd, 'opencode.json');
      return join(machine.environment.XDG_CONFIG_HOME || join(machine.home, '.config'), 'opencode', 'opencode.json');
    },
    afterwards: 'Restart opencode; "opencode mcp list" shows the server.',
  },
};

export const clientNamed = (id: ClientId): Client => TABLE[id];

/** The file of a client; undefined when it has none for projects. */
export const configFile = (id: ClientId, machine: Machine, place: Place): string | undefined =>
  TABLE[id].file(machine, place);

/** How a client starts `agent-broker mcp`, in the format of this client. */
export function serverEntry(client: ClientId, started: Started): object {
  return clientNamed(client).write(plainEntry(started));
}
