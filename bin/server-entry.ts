/** How an MCP client starts `agent-broker mcp` as one agent. The entry references the profile's file and never contains the key. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const SERVER_NAME = 'agent-broker';

/** The running Node, and the path of the launcher. */
export type Launcher = { node: string; script: string };

/** The format of most clients. */
export type ServerEntry = {
  type?: 'stdio';
  command: string;
  args: string[];
  env: { AGENT_BROKER_PROFILE: string };
};

export type Started = { profile: string; launcher: Launcher | undefined; platform: NodeJS.Platform };

/**
 * Returns the entry in the format of most clients. `launcher` undefined: by npx and the package name; otherwise by the launcher's path, which starts in a
 * tenth of the time and does not depend on the PATH of a desktop program.
 */
export function plainEntry({ profile, launcher, platform }: Started): ServerEntry {
  const npx = ['npx', '-y', 'agent-broker', 'mcp'];
  const words = launcher
    ? [launcher.node, launcher.script, 'mcp']
    : // On Windows npx is a script, which needs a shell.
      platform === 'win32'
      ? ['cmd', '/c', ...npx]
      : npx;
  const [command = '', ...args] = words;
  return { command, args, env: { AGENT_BROKER_PROFILE: profile } };
}

/** Quotes words as one line for a shell: this machine's by default. */
export const commandLine = (words: readonly string[], windows = process.platform === 'win32'): string =>
  words
    .map((word) => {
      if (/^[\w@%+=:,./-]+$/.test(word)) return word;
      return windows ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
    })
    .join(' ');

/** Returns the launcher of this program, if its path is permanent. */
export function ownLauncher(): Launcher | undefined {
  return lastingLauncher(process.execPath, ownScript());
}

/** The path of the launcher's file. */
export function ownScript(): string {
  // A checkout runs from source; the published package has JavaScript only, in dist/.
  const beside = new URL('./agent-broker.js', import.meta.url);
  return fileURLToPath(existsSync(beside) ? beside : new URL('../../bin/agent-broker.js', import.meta.url));
}

/** Returns the launcher for a given path; undefined in npx's cache, which is not permanent. */
export function lastingLauncher(node: string, script: string): Launcher | undefined {
  return /[\\/]_npx[\\/]/.test(script) ? undefined : { node, script };
}
