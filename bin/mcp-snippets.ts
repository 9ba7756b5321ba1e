/** What each MCP client wants to be told to start `agent-broker mcp` as one agent. */

export type Snippet = {
  client: string;
  /** What to do with the text. */
  how: string;
  text: string;
};

type Server = { command: string; args: string[]; env: { AGENT_BROKER_PROFILE: string } };

/**
 * Snippets for Claude Code, Claude Desktop, Cursor and VS Code. They name the profile's file and never hold the key: these
 * files are shared, synchronised and committed. `profile`: an absolute path.
 */
export function mcpSnippets(profile: string, platform: NodeJS.Platform = process.platform): Snippet[] {
  const npx = ['npx', '-y', 'agent-broker', 'mcp'];
  // Windows starts programs, and npx is a script there.
  const [command = '', ...args] = platform === 'win32' ? ['cmd', '/c', ...npx] : npx;
  const server: Server = { command, args, env: { AGENT_BROKER_PROFILE: profile } };
  const desktop =
    platform === 'win32'
      ? '%APPDATA%\\Claude\\claude_desktop_config.json'
      : platform === 'darwin'
        ? '~/Library/Application Support/Claude/claude_desktop_config.json'
        : '~/.config/Claude/claude_desktop_config.json';
  const mcpServers = JSON.stringify({ mcpServers: { 'agent-broker': server } }, null, 2);
  return [
    {
      client: 'Claude Code',
      how: 'Run in the project:',
      // The name comes before -e, which takes every word up to the dashes.
      text: `claude mcp add agent-broker -e ${quoted(`AGENT_BROKER_PROFILE=${profile}`, platform)} -- ${[command, ...args].join(' ')}`,
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
      text: JSON.stringify({ servers: { 'agent-broker': { type: 'stdio', ...server } } }, null, 2),
    },
  ];
}

/** One word for a shell, whatever is in it. */
function quoted(word: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return platform === 'win32' ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
