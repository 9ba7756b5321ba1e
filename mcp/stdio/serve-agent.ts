/** From a profile to tools: what is read when, and who is told of what is wrong. */
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { profilePath, readProfile } from '../profile.ts';
import { repeatsInMemory } from '../tools/repeats.ts';
import { profileSend } from './profile-send.ts';
import { repeatsOnDisk } from './repeats-on-disk.ts';
import { serveTools } from './serve-tools.ts';
import { tolerantRepeats } from './tolerant-repeats.ts';

type Environment = Readonly<Record<string, string | undefined>>;

type Given = {
  environment: Environment;
  /** Of the command line. */
  profile: string | undefined;
  /** How long a call waits for a person before the model is told to come back, in seconds. */
  waitSeconds: number;
  version: string;
};

/** Serves until standard input ends. Standard output is the protocol's; people are told on standard error. */
export function serveAgent({ environment, profile: file, waitSeconds, version }: Given): void {
  // A client that reads no log closes it.
  process.stderr.on('error', () => {});
  const tell = (text: string) => void process.stderr.write(`agent-broker mcp: ${text}\n`);
  const folder = waitingFolder(environment, file);
  const repeats = tolerantRepeats(repeatsOnDisk(folder), repeatsInMemory(), ({ message }) =>
    tell(`What waits for approval cannot be remembered in ${folder}, so it is forgotten when this ends: ${message}`),
  );
  const send = profileSend(() => readProfile(environment, file), tell);
  serveTools({ send, repeats, waitMs: waitSeconds * 1000, version, tell });
}

/** Beside the profile, one for each: what one agent waits for is nobody else's. */
function waitingFolder(environment: Environment, file: string | undefined): string {
  const path = profilePath(environment, file);
  if (path !== undefined) return join(dirname(path), 'waiting', basename(path, '.json'));
  const data = environment.AGENT_BROKER_DATA ?? join(homedir(), '.agent-broker');
  return join(data, 'waiting', basename(environment.AGENT_BROKER_AGENT_ID ?? 'agent'));
}
