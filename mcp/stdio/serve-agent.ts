/** From a profile to tools: what is read when, and who is told of what is wrong. */
import { flushCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { agentClient } from '../client/agent-client.ts';
import { profilePath, readProfile } from '../profile.ts';
import { permissionWatch } from '../tools/permission-watch.ts';
import { answerFirst, type FirstLines } from './first-answers.ts';
import { profileSend } from './profile-send.ts';

type Environment = Readonly<Record<string, string | undefined>>;

type Given = {
  environment: Environment;
  /** Of the command line. */
  profile: string | undefined;
  /** How long a call waits for a person before the model is told to come back, in seconds. */
  waitSeconds: number;
  version: string;
};

/** How often the broker is asked whether the agent may do something else now: a 304, as a rule. */
const LOOK_EVERY_MS = 60_000;
const CHANGED = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })}\n`;

/** Serves until standard input ends. Standard output is the protocol's; people are told on standard error. */
export function serveAgent({ environment, profile: file, waitSeconds, version }: Given): void {
  // A client that reads no log closes it.
  process.stderr.on('error', () => {});
  const tell = (text: string) => void process.stderr.write(`agent-broker mcp: ${text}\n`);
  const client = agentClient(profileSend(() => readProfile(environment, file), tell));
  // Until the SDK is there.
  let tellChange: () => void = () => void process.stdout.write(CHANGED);
  const permissions = permissionWatch(client, () => tellChange());
  // Asked while the client still shakes hands, so that the first list has it.
  permissions.refreshSoon();
  const looking = setInterval(permissions.refreshSoon, LOOK_EVERY_MS);
  // What ends before the SDK is there keeps nobody waiting.
  process.stdin.once('close', () => clearInterval(looking));
  process.stdin.once('end', () => clearInterval(looking));

  const serve = async (lines: FirstLines) => {
    const { rememberedIn, serveTools } = await import('./serve-tools.ts');
    const repeats = rememberedIn(waitingFolder(environment, file), tell);
    const report = (error: Error) => tell(error.message);
    const ended = () => clearInterval(looking);
    const given = { client, permissions, repeats, waitMs: waitSeconds * 1000, version, report, ended };
    tellChange = serveTools(lines, process.stdout, given);
    // Clients end this process as they like, and what was compiled would be kept only at an end of its own.
    flushCompileCache();
  };
  answerFirst(process.stdin, process.stdout, { version, permissions, load: (lines) => void serve(lines) });
}

/** Beside the profile, one for each: what one agent waits for is nobody else's. */
function waitingFolder(environment: Environment, file: string | undefined): string {
  const path = profilePath(environment, file);
  if (path !== undefined) return join(dirname(path), 'waiting', basename(path, '.json'));
  const data = environment.AGENT_BROKER_DATA ?? join(homedir(), '.agent-broker');
  return join(data, 'waiting', basename(environment.AGENT_BROKER_AGENT_ID ?? 'agent'));
}
