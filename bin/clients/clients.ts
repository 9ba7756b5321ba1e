/** The MCP clients that `connect` supports: where each keeps its list of servers, and in which format. */

import { appDataFolder, type Machine, xdgConfigFolder } from '../machine.ts';
import { SERVER_NAME, type ServerEntry } from '../server-entry.ts';
import { claudeDesktopFile } from './claude-desktop-file.ts';

export const CLIENTS = [
  'claude-code',
  'claude-desktop',
  'cursor',
  'vscode',
  'codex',
  'gemini',
  'antigravity',
  'copilot',
  'qwen',
  'opencode',
  'zed',
  'windsurf',
  'devin',
  'kiro',
  'cline',
  'continue',
] as const;
export type ClientId = (typeof CLIENTS)[number];

type Client = {
  title: string;
  /** The format of the file; json: with comments and trailing commas, where the client accepts them. */
  format: 'json' | 'toml' | 'yaml';
  /** The member of the file that lists the servers. */
  member: 'mcpServers' | 'servers' | 'mcp' | 'mcp_servers' | 'context_servers';
  /** The entry in the client's format. */
  write: (entry: ServerEntry) => object;
  /** The user's file, as a list of path segments. */
  user: (machine: Machine) => readonly string[];
  /** The file in a project's folder, as path segments; undefined: the client has no file for projects. */
  project?: readonly string[];
  /** What the person has to do afterwards. */
  afterwards: string;
};

const asItIs = (entry: ServerEntry): object => entry;
/** Adds the type of a stdio server. */
const withType = (entry: ServerEntry): object => ({ type: 'stdio', ...entry });

const TABLE: Record<ClientId, Client> = {
  // code.claude.com/docs/en/mcp: user scope, and project scope in the project's root.
  'claude-code': {
    title: 'Claude Code',
    format: 'json',
    member: 'mcpServers',
    write: withType,
    user: ({ environment, home }) => [environment.CLAUDE_CONFIG_DIR || home, '.claude.json'],
    project: ['.mcp.json'],
    afterwards: 'Restart Claude Code; /mcp shows the server.',
  },
  // modelcontextprotocol.io, Connect to local MCP servers.
  'claude-desktop': {
    title: 'Claude Desktop',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: claudeDesktopFile,
    afterwards: 'Quit Claude Desktop (closing its window is not enough) and start it again.',
  },
  // docs.cursor.com/context/model-context-protocol
  cursor: {
    title: 'Cursor',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ home }) => [home, '.cursor', 'mcp.json'],
    project: ['.cursor', 'mcp.json'],
    afterwards: 'Cursor asks whether to enable the server, or shows it in Settings, under MCP.',
  },
  // code.visualstudio.com/docs/copilot/reference/mcp-configuration
  vscode: {
    title: 'VS Code',
    format: 'json',
    member: 'servers',
    write: withType,
    user: (machine) => [...appDataFolder(machine), 'Code', 'User', 'mcp.json'],
    project: ['.vscode', 'mcp.json'],
    afterwards: 'VS Code asks whether to trust the server when it starts it (command: MCP: List Servers).',
  },
  // github.com/google-gemini/gemini-cli, docs/tools/mcp-server.md
  gemini: {
    title: 'Gemini CLI',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ home }) => [home, '.gemini', 'settings.json'],
    project: ['.gemini', 'settings.json'],
    afterwards: 'Restart Gemini CLI in a folder that it trusts; /mcp shows the server.',
  },
  // antigravity.google/docs/mcp: one file for the command line, the desktop program and the IDE (November 2026).
  antigravity: {
    title: 'Antigravity',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ home }) => [home, '.gemini', 'config', 'mcp_config.json'],
    project: ['.agents', 'mcp_config.json'],
    afterwards: 'Restart Antigravity; /mcp, or Manage MCP Servers, shows the server.',
  },
  // "copilot mcp --help" and "copilot help environment" (1.0.102); `local` and `tools` are what its own command writes.
  copilot: {
    title: 'GitHub Copilot CLI',
    format: 'json',
    member: 'mcpServers',
    write: (entry) => ({ type: 'local', ...entry, tools: ['*'] }),
    user: ({ environment, home }) =>
      environment.COPILOT_HOME ? [environment.COPILOT_HOME, 'mcp-config.json'] : [home, '.copilot', 'mcp-config.json'],
    project: ['.github', 'mcp.json'],
    afterwards: 'Restart Copilot CLI; "copilot mcp list" shows the server.',
  },
  // github.com/QwenLM/qwen-code, whose settings derive from Gemini CLI (0.24.4)
  qwen: {
    title: 'Qwen Code',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ home }) => [home, '.qwen', 'settings.json'],
    project: ['.qwen', 'settings.json'],
    afterwards: 'Restart Qwen Code; /mcp shows the server.',
  },
  // opencode.ai/docs/mcp-servers and opencode.ai/docs/config: command and arguments in one list, and `environment`.
  opencode: {
    title: 'opencode',
    format: 'json',
    member: 'mcp',
    write: ({ command, args, env }) => ({
      type: 'local',
      enabled: true,
      command: [command, ...args],
      environment: env,
    }),
    user: ({ environment, home }) => [
      ...xdgConfigFolder(environment.XDG_CONFIG_HOME, home),
      'opencode',
      'opencode.json',
    ],
    project: ['opencode.json'],
    afterwards: 'Restart opencode; "opencode mcp list" shows the server.',
  },
  // github.com/openai/codex, codex-rs/config/src/mcp_types.rs (0.169.0)
  codex: {
    title: 'Codex',
    format: 'toml',
    member: 'mcp_servers',
    write: asItIs,
    user: ({ environment, home }) =>
      environment.CODEX_HOME ? [environment.CODEX_HOME, 'config.toml'] : [home, '.codex', 'config.toml'],
    project: ['.codex', 'config.toml'],
    afterwards: 'Restart Codex; "codex mcp list" shows the server.',
  },
  // github.com/zed-industries/zed, crates/settings_content/src/project.rs, and crates/paths
  zed: {
    title: 'Zed',
    format: 'json',
    member: 'context_servers',
    write: asItIs,
    user: (machine) => {
      const { platform, environment, home } = machine;
      if (platform === 'win32') return [...appDataFolder(machine), 'Zed', 'settings.json'];
      const given = platform === 'linux' ? environment.XDG_CONFIG_HOME : undefined;
      return [...xdgConfigFolder(given, home), 'zed', 'settings.json'];
    },
    project: ['.zed', 'settings.json'],
    afterwards: 'Zed starts the server immediately; the settings of its agent panel show it.',
  },
  // docs.windsurf.com/windsurf/cascade/mcp
  windsurf: {
    title: 'Windsurf',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ home }) => [home, '.codeium', 'windsurf', 'mcp_config.json'],
    afterwards: 'Press Refresh under MCP servers in Cascade, or restart Windsurf.',
  },
  // docs.devin.ai/cli/extensibility/mcp/configuration: the files of Devin CLI, and of Devin Local in Devin Desktop.
  devin: {
    title: 'Devin',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: (machine) => [
      ...(machine.platform === 'win32' ? appDataFolder(machine) : [machine.home, '.config']),
      'devin',
      'mcp_config.json',
    ],
    project: ['.devin', 'mcp_config.json'],
    afterwards: 'Restart Devin; "devin mcp list" shows the server.',
  },
  // kiro.dev/docs/mcp/configuration: the IDE's and the command line's.
  kiro: {
    title: 'Kiro',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ home }) => [home, '.kiro', 'settings', 'mcp.json'],
    project: ['.kiro', 'settings', 'mcp.json'],
    afterwards: 'Kiro reads the file again by itself; its MCP servers show the server.',
  },
  // github.com/cline/cline, sdk/packages/shared/src/storage/paths.ts: the command line's and the extensions'.
  cline: {
    title: 'Cline',
    format: 'json',
    member: 'mcpServers',
    write: asItIs,
    user: ({ environment: { CLINE_MCP_SETTINGS_PATH, CLINE_DATA_DIR, CLINE_DIR }, home }) => {
      if (CLINE_MCP_SETTINGS_PATH) return [CLINE_MCP_SETTINGS_PATH];
      const data = CLINE_DATA_DIR ? [CLINE_DATA_DIR] : CLINE_DIR ? [CLINE_DIR, 'data'] : [home, '.cline', 'data'];
      return [...data, 'settings', 'cline_mcp_settings.json'];
    },
    afterwards: 'Cline reads the file again by itself; MCP Servers, Configure shows the server.',
  },
  // docs.continue.dev/reference, and github.com/continuedev/continue, packages/config-yaml (1.42.0)
  continue: {
    title: 'Continue',
    format: 'yaml',
    member: 'mcpServers',
    write: (entry) => ({ name: SERVER_NAME, ...entry }),
    user: ({ environment: { CONTINUE_GLOBAL_DIR }, home }) =>
      CONTINUE_GLOBAL_DIR ? [CONTINUE_GLOBAL_DIR, 'config.yaml'] : [home, '.continue', 'config.yaml'],
    afterwards: 'Continue reads the file again by itself; "cn" at its next start.',
  },
};

export const clientNamed = (id: ClientId): Client => TABLE[id];
