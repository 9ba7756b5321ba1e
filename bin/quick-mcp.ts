/**
 * `agent-broker mcp` without the rest of the command line: a client starts it with every session and keeps it running, so that
 * what it loads is paid for each time. bin/commands/mcp.ts is the same command for whoever asks for its help.
 */

import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { packageVersion } from './package-version.ts';

/** The broker's long polls end after this, and clients give up on a tool after 60 seconds (docs/clients/waiting.md). */
export const MOST_WAIT_SECONDS = 50;

/** Whether these words, after `mcp`, are such that nobody has to be helped with them. */
export function readWords(words: readonly string[]): { profile: string | undefined; waitSeconds: number } | undefined {
  try {
    const options = { profile: { type: 'string' }, wait: { type: 'string' } } as const;
    const { profile, wait } = parseArgs({ args: [...words], options }).values;
    const waitSeconds = wait === undefined ? MOST_WAIT_SECONDS : Number(wait);
    const isFine = wait !== '' && Number.isInteger(waitSeconds) && waitSeconds >= 0 && waitSeconds <= MOST_WAIT_SECONDS;
    return isFine ? { profile, waitSeconds } : undefined;
  } catch {
    return undefined;
  }
}

/** Serves, and answers true; or false: the words are the whole command line's to explain. */
export async function quickMcp(words: readonly string[]): Promise<boolean> {
  const read = readWords(words);
  if (read === undefined) return false;
  // It waits most of its life: room for young objects, and compilers for hot code, would lie idle: 14 MB of 91.
  // The first flag takes another 4.
  const flags = ['--optimize-for-size', '--semi-space-growth-factor=1', '--no-opt', '--no-maglev'];
  for (const flag of flags) setFlagsFromString(flag);
  const { serveAgent } = await import('../mcp/stdio/serve-agent.ts');
  serveAgent({ environment: process.env, ...read, version: packageVersion() });
  return true;
}
