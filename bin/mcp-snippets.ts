/** Snippets for configuring MCP clients by hand to start `agent-broker mcp` as one agent. */

import { serverEntry } from './client-config.ts';
import { commandLine, type Launcher, plainEntry, SERVER_NAME } from './server-entry.ts';

export type Snippet = {
  client: string;
  /** What to do with the text. */
  how: string;
  text: string;
};

/**
 * Snippets for Claude Code, Claude Desktop, Cursor, VS Code, Codex and Gemini CLI. They reference the profile's file and never contain the
 * key, because configurations are shared, synchronised and committed. `profile`: an absolute path. `launcher`: as for serverEntry.
 */
export function mcpSnippets(
  profile: string,
  { platform = process.platform, launcher }: { platform?: NodeJS.Platform; launcher?: Launcher | undefined } = {},
): Snippet[] {
  const entry = (client: Parameters<typeof serverEntry>[0]) => serverEntry(client, { profile, launcher, platform });
  const desktop =
    platform === 'win32'
      ? '%APPDATA%\\Claude\\claude_desktop_config.json'
      : platform === 'darwin'
        ? '~/Library/Application Support/Claude/claude_desktop_config.json'
        : '~/.config/Claude/claude_desktop_config.json';
  const mcpServers = JSON.stringify({ mcpServers: { [SERVER_NAME]: entry('cursor') } }, null, 2);
  const { command, args } = plainEntry({ profile, launcher, platform });
  const line = (...words: string[]) => commandLine(words, platform === 'win32');
  const named = `AGENT_BROKER_PROFILE=${profile}`;
  return [
    {
      client: 'Claude Code',
      how: 'Run in the project:',
      // The name comes before -e, which takes all words up to `--`.
      text: line('claude', 'mcp', 'add', SERVER_NAME, '-e', named, '--', command, ...args),
    },
    {
      client: 'Claude Desktop',
      how: `Add to ${desktop}, then quit Claude Desktop and start it again:`,
      text: mcpServers,
    },
    { client: 'Cursor', how: 'Add to ~/.cursor/mcp.json, or .cursor/mcp.json in the project:', text: mcpServers },
    {
      client: 'VS Code',
      how: 'Add to .vscode/mcp.json in the project:',
      text: JSON.stringify({ servers: { [SERVER_NAME]: entry('vscode') } }, null, 2),
    },
    {
      client: 'Codex',
      how: 'Run:',
      text: line('codex', 'mcp', 'add', SERVER_NAME, '--env', named, '--', command, ...args),
    },
    {
      client: 'Gemini CLI',
      how: 'Run:',
      text: line('gemini', 'mcp', 'add', '-s', 'user', '-e', named, SERVER_NAME, command, ...args),
    },
  ];
}
