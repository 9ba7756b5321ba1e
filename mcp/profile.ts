/** The agent's profile, for programs on the agent's side: from the environment, or from a file. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { AgentKey } from './client/signer.ts';

/** `url`: address of the broker, without a trailing slash. */
export type Profile = { url: string } & AgentKey;

/** The profile is invalid; the message says what is missing and where. */
export class ProfileError extends Error {}

/** There is no profile yet. */
export class NoProfile extends ProfileError {}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the profile. From the environment: AGENT_BROKER_AGENT_ID, AGENT_BROKER_OWNER_ID, AGENT_BROKER_PRIVATE_KEY (PEM, or a file's path)
 * and AGENT_BROKER_URL; an agent without a key has AGENT_BROKER_TOKEN_FILE in place of owner and key. Otherwise from the profile file:
 * `file`, AGENT_BROKER_PROFILE, or `profiles/default.json` in the data folder. An empty variable counts as not set.
 * Throws ProfileError.
 */
export function readProfile(environment: Environment, file?: string): Profile {
  const path = profilePath(environment, file);
  if (path === undefined) return fromEnvironment(environment);
  if (!existsSync(path))
    throw new NoProfile(
      `There is no agent profile at ${path}. Name one with --profile or AGENT_BROKER_PROFILE, or set AGENT_BROKER_AGENT_ID, ` +
        'AGENT_BROKER_OWNER_ID and AGENT_BROKER_PRIVATE_KEY.',
    );
  const content = readJson(path);
  if (content.token_file === undefined) refuseOpenFile(path);
  if (content.private_key !== undefined && content.agent_id === undefined && content.owner_id === undefined)
    throw new ProfileError(unfinishedProfile(path));
  return complete(
    {
      url: content.url,
      agentId: content.agent_id,
      ownerId: content.owner_id,
      privateKey: content.private_key,
      tokenFile: typeof content.token_file === 'string' ? resolve(dirname(path), content.token_file) : undefined,
    },
    path,
  );
}

/** Returns what to do about an incomplete profile. Only the broker can tell whether the profile's key was bound to an agent. */
export function unfinishedProfile(path: string): string {
  return (
    `${path} contains a key, but not the ids of its agent. An owner sees with "npx agent-broker agent list --json" whether the agent is there. ` +
    `If it is, add its "agent_id" and "owner_id" to the file, and "npx agent-broker doctor --profile ${path}" tells whether it has ` +
    'this key. If it is not, remove the file and make the agent again.'
  );
}

/** Returns the path of the file that readProfile reads; undefined when the profile is in the environment. */
export function profilePath(environment: Environment, file?: string): string | undefined {
  if (file === undefined && environment.AGENT_BROKER_AGENT_ID) return undefined;
  const folder = environment.AGENT_BROKER_DATA || './.agent-broker';
  return resolve(file ?? (environment.AGENT_BROKER_PROFILE || join(folder, 'profiles', 'default.json')));
}

/** JSON that is not an object is treated as an empty object. */
function readJson(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ProfileError(`The profile ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  try {
    // Some editors begin a file with a byte order mark.
    return Object(JSON.parse(text.replace(/^\uFEFF/, '')));
  } catch {
    throw new ProfileError(`The profile ${path} is not JSON.`);
  }
}

function fromEnvironment(environment: Environment): Profile {
  const key = environment.AGENT_BROKER_PRIVATE_KEY || undefined;
  if (key !== undefined && !key.includes('-----BEGIN') && !existsSync(key))
    throw new ProfileError('AGENT_BROKER_PRIVATE_KEY is neither a PEM nor the path of a file.');
  const pem = key === undefined || key.includes('-----BEGIN') ? key : readKeyFile(key);
  return complete(
    {
      url: environment.AGENT_BROKER_URL || 'http://localhost:8787',
      agentId: environment.AGENT_BROKER_AGENT_ID,
      ownerId: environment.AGENT_BROKER_OWNER_ID,
      privateKey: pem,
      tokenFile: environment.AGENT_BROKER_TOKEN_FILE || undefined,
    },
    'the environment',
  );
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ProfileError(
      `The key ${path} of AGENT_BROKER_PRIVATE_KEY cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
}

type Found = Record<'url' | 'agentId' | 'ownerId' | 'privateKey' | 'tokenFile', unknown>;

function complete({ url, agentId, ownerId, privateKey, tokenFile }: Found, where: string): Profile {
  if (privateKey !== undefined && tokenFile !== undefined)
    throw new ProfileError(`In ${where} there is a key and a file with tokens: leave one of them out.`);
  const found = tokenFile === undefined ? { url, agentId, ownerId, privateKey } : { url, agentId, tokenFile };
  const missing = Object.entries(found).filter(([, value]) => typeof value !== 'string' || value === '');
  if (missing.length > 0)
    throw new ProfileError(`In ${where} this is missing: ${missing.map(([name]) => name).join(', ')}.`);
  return { ...(found as Profile), url: String(url).replace(/\/+$/, '') };
}

/** The file contains the private key, so it must not be readable by others. */
function refuseOpenFile(path: string): void {
  if (othersCanRead(path))
    throw new ProfileError(`Others can read the profile ${path}, which holds a private key. Run: chmod 600 ${path}`);
}

/** Whether users other than the file's owner can read a file. Throws errors of the file system. */
export const othersCanRead = (path: string): boolean =>
  process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0;
