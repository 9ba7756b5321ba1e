/** Creates an agent whose key is generated on this machine: with an owner's session, an invite, or a bootstrap token. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { ignoreDefaultFolder } from '../broker/runtime/ignored-folder.ts';
import { isPrivatePlace } from '../broker/runtime/private-place.ts';
import { unfinishedProfile } from '../mcp/profile.ts';
import {
  type BrokerConnection,
  type ConnectionOptions,
  connectAsNobody,
  connectAsOwner,
  givenUrl,
  withConnection,
} from './connection.ts';
import type { ShownGrant } from './describe-grants.ts';
import { CommandFailed, OutcomeUnknown, WrongUsage } from './failure.ts';
import type { GrantRequest, LimitOptions } from './resolve-grants.ts';

export type Terms = LimitOptions & { policy?: string; grant?: GrantRequest[] };
export type MakeOptions = ConnectionOptions & Terms & { invite?: string };

export type MadeAgent = {
  agent_id: string;
  owner_id: string;
  status: string;
  url: string;
  /** The agent's grants; undefined for an invited agent, whose grants are set by the invite. */
  grants: ShownGrant[];
};

/** Adds the options for a new agent. */
export const withTerms = (command: Command): Command =>
  withConnection(command)
    .option('--policy <name>', 'policy of the agent; default: the default policy')
    .option(
      '--grant <platform=word,…>',
      'what it may do: presets such as read, or scopes; may be given several times',
      readGrant,
    )
    .option('--repos <owner/name,…>', 'only these repositories; owner/* for all of an owner', readList)
    .option('--recipients <address,…>', 'only these recipients; @acme.example for all of a domain', readList)
    .option('--expires <time>', 'expiry: a duration such as 30d, or a time such as 2027-01-31T18:00:00Z')
    .option('--require-approval', 'every call needs an approval');

/** Parses `codehost=issues` or `codehost=issues.read,issues.write`. */
function readGrant(text: string, before: GrantRequest[] = []): GrantRequest[] {
  const [, platform = '', list = ''] = /^([^=\s]+)=(\S+)$/.exec(text) ?? [];
  const words = list.split(',').filter((word) => word !== '');
  if (words.length === 0) throw new InvalidArgumentError('Write it as platform=preset, or platform=scope,scope.');
  return [...before, { platform, words }];
}

const readList = (text: string, before: string[] = []): string[] => [
  ...before,
  ...text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== ''),
];

/** Whether the options define what the agent may do. */
export const hasTerms = ({ policy, grant, repos, recipients, expires, requireApproval }: Terms): boolean =>
  [policy, grant, repos, recipients, expires, requireApproval].some((one) => one !== undefined);

/**
 * Looks up at the broker what a new agent would be granted. Changes nothing.
 *
 * @throws CommandFailed where the agent would be refused; WrongUsage
 */
export async function lookUpTerms(broker: BrokerConnection, name: string, terms: Terms): Promise<ShownGrant[]> {
  await refuseBadName(name);
  if (!terms.grant && (terms.repos ?? terms.recipients ?? terms.expires ?? terms.requireApproval) !== undefined)
    throw new WrongUsage('--repos, --recipients, --expires and --require-approval limit a --grant: name one.');
  const { agents } = (await broker.ask('GET', '/owner/agents')) as { agents: { name: string; status: string }[] };
  if (agents.some((one) => one.name === name && !['revoked', 'deleted', 'expired'].includes(one.status)))
    throw new CommandFailed(`There is an agent "${name}" already. Choose another name.`);
  if (terms.policy !== undefined) {
    const { policies } = (await broker.ask('GET', '/owner/policies')) as { policies: { id: string; name: string }[] };
    if (!policies.some(({ id, name }) => terms.policy === id || terms.policy === name))
      throw new CommandFailed(
        `There is no policy "${terms.policy}". There are: ${policies.map((one) => one.name).join(', ')}.`,
      );
  }
  const { resolveGrants } = await import('./resolve-grants.ts');
  return await resolveGrants(broker, terms.grant ?? [], terms);
}

/**
 * Generates the key, binds it at the broker, and writes the profile to `path`, which must not exist. Throws CommandFailed, and
 * cleans up, when the broker refuses or the file cannot be written; WrongUsage for conflicting options. When the broker may have
 * bound the key, the file is kept: it is the only copy.
 */
export async function makeAgent(name: string, options: MakeOptions, path: string): Promise<MadeAgent> {
  if (options.invite !== undefined && hasTerms(options))
    throw new WrongUsage(
      'What an invited agent may do was said with the invite: leave out --policy, --grant and its limits.',
    );
  const broker = options.invite === undefined ? await connectAsOwner(options) : await connectAsNobody(options);
  const grants = options.invite === undefined ? await lookUpTerms(broker, name, options) : [];
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const private_key = privateKey.export({ format: 'pem', type: 'pkcs8' });
  // Reserved before binding: an agent whose key cannot be stored would be lost.
  reserve(path, { url: broker.url, private_key });
  let bound: Bound;
  try {
    const pem = publicKey.export({ format: 'pem', type: 'spki' }) as string;
    bound =
      options.invite === undefined
        ? await inviteAndBind(broker, name, { policy: options.policy, grants }, pem)
        : await bind(broker, options.invite, pem);
  } catch (error) {
    if (error instanceof MaybeBound)
      throw new CommandFailed(`${error.message} The broker may know the key all the same. ${unfinishedProfile(path)}`);
    rmSync(path, { force: true });
    throw error;
  }
  const { agent_id, owner_id, status } = bound;
  const url = givenUrl(options) ?? bound.proxy_url ?? broker.url;
  complete(path, { url, agent_id, owner_id, private_key });
  return { agent_id, owner_id, status, url, grants };
}

/** Checks the name by the rule of governance files, which could not list the agent otherwise. Throws WrongUsage. */
async function refuseBadName(name: string): Promise<void> {
  const { isAgentName, NAME_FORM } = await import('../broker/config-file/name.ts');
  if (!isAgentName(name))
    throw new WrongUsage(`${JSON.stringify(name)} is not a valid agent name: ${NAME_FORM} (with spaces between them).`);
}

/** A sentence about the key in the profile at this path. */
export const placeOfKey = (path: string): string =>
  `Its key is in ${path}${isPrivatePlace(path) ? ', which only you can read,' : ''} and nowhere else.`;

/** Creates a new file with mode 0600. */
function reserve(path: string, content: object): void {
  const unwritable = (error: unknown) =>
    new CommandFailed(
      `The profile ${path} cannot be written (${(error as NodeJS.ErrnoException).code}). Name another file with --out.`,
    );
  try {
    // Profiles are in a folder of the data folder.
    ignoreDefaultFolder(dirname(dirname(path)));
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unwritable(error);
  }
  try {
    writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new CommandFailed(`There is a profile at ${path} already, which is kept. Name another file with --out.`);
    throw unwritable(error);
  }
}

/** Atomically replaces the reserved file by the complete profile. */
function complete(path: string, profile: { agent_id: string; owner_id: string } & Record<string, unknown>): void {
  const beside = `${path}.part`;
  try {
    writeFileSync(beside, `${JSON.stringify(profile, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(beside, path);
  } catch (error) {
    const { agent_id, owner_id } = profile;
    throw new CommandFailed(
      `The agent was created, and its key is in ${path}, but ${beside} cannot be written (${(error as NodeJS.ErrnoException).code}). ` +
        `Add to ${path}: "agent_id": "${agent_id}", "owner_id": "${owner_id}".`,
    );
  }
}

type Bound = { agent_id: string; owner_id: string; status: string; proxy_url?: string };

/** The broker may or may not have bound the key. */
class MaybeBound extends CommandFailed {}

type Invited = { policy: string | undefined; grants: readonly ShownGrant[] };

export async function makeInvite(
  broker: BrokerConnection,
  name: string,
  { policy, grants }: Invited,
): Promise<Record<string, unknown>> {
  return await broker.ask('POST', '/owner/invites', {
    agent_name: name,
    ...termsOf({ policy, grants }),
  });
}

/** Formats the terms for the owner API. */
export const termsOf = ({ policy, grants }: Invited) => ({
  ...(policy !== undefined && { policy }),
  ...(grants.length > 0 && {
    grants: grants.map(({ platform: _, presets: __, hasRepositories: ___, ...grant }) => grant),
  }),
});

/** Binds the key with a new invite, as invited agents do. An invite that was not used is revoked: then no key was bound. */
async function inviteAndBind(broker: BrokerConnection, name: string, invited: Invited, pem: string): Promise<Bound> {
  const invite = await makeInvite(broker, name, invited);
  try {
    return await bind(broker, String(invite.bind_secret), pem);
  } catch (error) {
    const isTakenBack = await broker.ask('DELETE', `/owner/invites/${invite.id}`).then(
      ({ removed }) => removed === true,
      () => false,
    );
    throw isTakenBack && error instanceof MaybeBound ? new CommandFailed(error.message) : error;
  }
}

async function bind(broker: BrokerConnection, token: string, public_key_pem: string): Promise<Bound> {
  try {
    const bound = await askToBind(broker, token, public_key_pem);
    if (typeof bound.agent_id === 'string' && typeof bound.owner_id === 'string') return bound as Bound;
  } catch (error) {
    throw error instanceof OutcomeUnknown ? new MaybeBound(error.message) : error;
  }
  throw new MaybeBound(`The response from ${broker.url} does not name the agent of the key.`);
}

async function askToBind(broker: BrokerConnection, token: string, public_key_pem: string) {
  if (token.startsWith('inv_'))
    return await broker.ask('POST', '/v1/invites/bind', { bind_secret: token, public_key_pem });
  if (token.startsWith('abt_'))
    return await broker.ask('POST', '/v1/agents/bind', { bootstrap_token: token, public_key_pem });
  throw new WrongUsage('An invite begins with inv_, a bootstrap token with abt_; this is neither.');
}
