/** How an MCP client starts `agent-broker mcp` as one agent. The entry names the profile's file and never holds the key. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type ClientId, clientNamed } from './client-config.ts';

export const SERVER_NAME = 'agent-broker';

/** What runs now: a Node, and the launcher's file. */
export type Launcher = { node: string; script: string };

/** As most clients want it. */
export type ServerEntry = {
  type?: 'stdio';
  command: string;
  args: string[];
  env: { AGENT_BROKER_PROFILE: string };
};

export type Started = { profile: string; launcher: Launcher | undefined; platform: NodeJS.Platform };

/**
 * The entry for a client that takes what most do. `launcher` undefined: by npx, which finds the package by its name; else by its
 * path, which starts in a tenth of the time and does not depend on what a desktop program has in its PATH.
 */
export function plainEntry({ profile, launcher, platform }: Started): ServerEntry {
  const npx = ['npx', '-y', 'agent-broker', 'mcp'];
  const words = launcher
    ? [launcher.node, launcher.script, 'mcp']
    : // Windows starts programs, and npx is a script there.
      platform === 'win32'
      ? ['cmd', '/c', ...npx]
      : npx;
  const [command = '', ...args] = words;
  return { command, args, env: { AGENT_BROKER_PROFILE: profile } };
}

/** The same as this client writes it in its configuration. */
export function serverEntry(client: ClientId, started: Started): object {
  return clientNamed(client).write(plainEntry(started));
}

/** One line for a shell, whatever is in the words. */
export const commandLine = (words: readonly string[], windows: boolean): string =>
  words
    .map((word) => {
      if (/^[\w@%+=:,./-]+$/.test(word)) return word;
      return windows ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
    })
    .join(' ');

/** The launcher that this program came from, when it stays where it is. */
export function ownLauncher(): Launcher | undefined {
  // A checkout runs from source; the published package has JavaScript only, in dist/.
  const beside = new URL('./agent-broker.js', import.meta.url);
  const file = existsSync(beside) ? beside : new URL('../../bin/agent-broker.js', import.meta.url);
  return lastingLauncher(process.execPath, fileURLToPath(file));
}

/** The same, told where it is: npx's cache is emptied behind its back. */
export function lastingLauncher(node: string, script: string): Launcher | undefined {
  return /[\\/]_npx[\\/]/.test(script) ? undefined : { node, script };
}
