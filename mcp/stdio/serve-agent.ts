/** Serves the tools of the agent of a profile, and reports problems on standard error. */
import { flushCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Caller } from '../client/action.ts';
import { agentClient } from '../client/agent-client.ts';
import { profilePath, readProfile } from '../profile.ts';
import { permissionWatch } from '../tools/permission-watch.ts';
import { answerFirst, type FirstLines } from './first-answers.ts';
import { profileSend } from './profile-send.ts';

type Environment = Readonly<Record<string, string | undefined>>;

type Given = {
  environment: Environment;
  /** The profile file, from the command line. */
  profile: string | undefined;
  /** Returns the caller for calls that name none. */
  configured: (() => Caller) | undefined;
  /** How long a held call waits before the model is told to poll, in seconds. */
  waitSeconds: number;
  version: string;
};

/** Poll interval for changed permissions: usually a 304. */
const CHECK_INTERVAL_MS = 60_000;
/** How long the program lives after its connection is closed, in milliseconds: time to store what a pending call needs. */
const EXIT_DELAY_MS = 1_000;
const CHANGED = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })}\n`;

/** Serves until standard input ends. Standard output is for the protocol, standard error for people. */
export function serveAgent({ environment, profile: file, configured, waitSeconds, version }: Given): void {
  // A client that ignores the log may close it.
  process.stderr.on('error', () => {});
  const tell = (text: string) => void process.stderr.write(`agent-broker mcp: ${text}\n`);
  const client = agentClient(profileSend(() => readProfile(environment, file), tell));
  // Until the SDK is loaded.
  let tellChange: () => void = () => void process.stdout.write(CHANGED);
  const permissions = permissionWatch(client, () => tellChange());
  // Requested during the handshake, so that the first list includes the permissions.
  permissions.refreshSoon();
  const looking = setInterval(permissions.refreshSoon, CHECK_INTERVAL_MS);
  // If the input ends before the SDK is loaded.
  process.stdin.once('close', () => clearInterval(looking));
  process.stdin.once('end', () => clearInterval(looking));

  const serve = async (lines: FirstLines) => {
    const { rememberedIn, serveTools } = await import('./serve-tools.ts');
    const repeats = rememberedIn(waitingFolder(environment, file), tell);
    const report = (error: Error) => tell(error.message);
    const ended = () => {
      clearInterval(looking);
      // A write whose response nobody waits for any more goes on at the broker; the identical call gets its result.
      setTimeout(() => process.exit(), EXIT_DELAY_MS).unref();
    };
    const given = { client, permissions, repeats, configured, waitMs: waitSeconds * 1000, version, report, ended };
    tellChange = serveTools(lines, process.stdout, given);
    // Clients may kill this process, and the compile cache would only be written at a regular exit.
    flushCompileCache();
  };
  answerFirst(process.stdin, process.stdout, { version, permissions, load: (lines) => void serve(lines) });
}

/** The folder of pending calls: beside the profile, one for each agent. */
function waitingFolder(environment: Environment, file: string | undefined): string {
  const path = profilePath(environment, file);
  if (path !== undefined) return join(dirname(path), 'waiting', basename(path, '.json'));
  const data = environment.AGENT_BROKER_DATA || join(homedir(), '.agent-broker');
  return join(data, 'waiting', basename(environment.AGENT_BROKER_AGENT_ID ?? 'agent'));
}
