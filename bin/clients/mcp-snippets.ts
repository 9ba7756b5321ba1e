/** Snippets that configure MCP clients by hand to start `agent-broker mcp` as one agent. */

import type { Machine } from '../machine.ts';
import { commandLine, type Launcher, plainEntry, SERVER_NAME } from '../server-entry.ts';
import { configFile, serverEntry } from './client-config.ts';
import { CLIENTS, type ClientId, clientNamed } from './clients.ts';
import { entryText } from './edit-client.ts';

export type Snippet = {
  client: string;
  /** What the person has to do with the text. */
  how: string;
  text: string;
};

/**
 * Snippets for these clients. They reference the profile's file and never contain the key, because configurations are shared,
 * synchronised and committed. `profile`: an absolute path. `launcher`: as for serverEntry.
 */
export async function mcpSnippets(
  profile: string,
  {
    machine,
    launcher,
    clients = CLIENTS,
  }: { machine: Machine; launcher?: Launcher | undefined; clients?: readonly ClientId[] },
): Promise<Snippet[]> {
  const { platform } = machine;
  const { command, args } = plainEntry({ profile, launcher, platform });
  const line = (...words: string[]) => commandLine(words, platform === 'win32');
  const named = `AGENT_BROKER_PROFILE=${profile}`;
  // Clients with a command of their own for adding a server.
  const commands: { [client in ClientId]?: string } = {
    // The name comes before -e, which consumes all words up to `--`.
    'claude-code': line('claude', 'mcp', 'add', SERVER_NAME, '-e', named, '--', command, ...args),
    codex: line('codex', 'mcp', 'add', SERVER_NAME, '--env', named, '--', command, ...args),
    gemini: line('gemini', 'mcp', 'add', '-s', 'user', '-e', named, SERVER_NAME, command, ...args),
    copilot: line('copilot', 'mcp', 'add', '--env', named, SERVER_NAME, '--', command, ...args),
    qwen: line('qwen', 'mcp', 'add', '-s', 'user', '-e', named, SERVER_NAME, command, ...args),
  };
  return await Promise.all(
    clients.map(async (client) => {
      const text = commands[client] ?? (await entryText(client, serverEntry(client, { profile, launcher, platform })));
      const how =
        commands[client] !== undefined
          ? `Run${client === 'claude-code' ? ' in the project' : ''}:`
          : `Add to ${configFile(client, machine, 'user') ?? ''}:`;
      return { client: clientNamed(client).title, how, text };
    }),
  );
}
