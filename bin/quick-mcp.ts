/**
 * Fast path of `agent-broker mcp` without the rest of the command line, because a client starts it with every session and keeps it
 * running. bin/commands/mcp.ts is the same command with help and errors.
 */

import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { CallerProblem } from '../mcp/caller-problem.ts';
import { type CallerOptions, configuredCaller } from '../mcp/configured-caller.ts';
import { packageVersion } from './package-version.ts';

/** Limit of the broker's long polls; clients time out after 60 seconds (docs/clients/waiting.md). */
export const MAX_WAIT_SECONDS = 50;

type Read = { profile: string | undefined; waitSeconds: number; caller: CallerOptions };

/** Parses the arguments after `mcp`; undefined if they need the full command line (help, errors). */
export function readArguments(args: readonly string[]): Read | undefined {
  try {
    const text = { type: 'string' } as const;
    const options = { profile: text, wait: text, caller: text, 'caller-file': text };
    const { profile, wait, caller, 'caller-file': callerFile } = parseArgs({ args: [...args], options }).values;
    const waitSeconds = wait === undefined ? MAX_WAIT_SECONDS : Number(wait);
    return /^\d+$/.test(wait ?? '0') && waitSeconds <= MAX_WAIT_SECONDS
      ? { profile, waitSeconds, caller: { caller, callerFile } }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Serves and returns true; returns false when the full command line is needed. */
export async function quickMcp(args: readonly string[]): Promise<boolean> {
  const read = readArguments(args);
  if (read === undefined) return false;
  let configured: ReturnType<typeof configuredCaller>;
  try {
    configured = configuredCaller(read.caller, process.env);
  } catch (error) {
    if (error instanceof CallerProblem) return false;
    throw error;
  }
  // The process is idle most of the time: a smaller young generation and no optimising compilers save 14 MB of 91. The first
  // flag saves another 4.
  const flags = ['--optimize-for-size', '--semi-space-growth-factor=1', '--no-opt', '--no-maglev'];
  for (const flag of flags) setFlagsFromString(flag);
  const { serveAgent } = await import('../mcp/stdio/serve-agent.ts');
  const { profile, waitSeconds } = read;
  serveAgent({ environment: process.env, profile, configured, waitSeconds, version: packageVersion() });
  return true;
}
