/** Makes an agent whose key is made here: with an owner's session, or with an invite or bootstrap token. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import {
  type BrokerConnection,
  type ConnectionOptions,
  connectAsNobody,
  connectAsOwner,
  givenUrl,
  withConnection,
} from './connection.ts';
import { CommandFailed, WrongUsage } from './failure.ts';

type Grant = { platformId: string; scopes: string[] };
type Terms = { policy?: string; grant?: Grant[] };
export type MakeOptions = ConnectionOptions & Terms & { invite?: string };

export type MadeAgent = { agent_id: string; owner_id: string; status: string; url: string };

/** What an agent is to be. */
export const withTerms = (command: Command): Command =>
  withConnection(command)
    .option('--policy <name>', 'the policy that it is under; otherwise the default one')
    .option('--grant <platform=scope,…>', 'what it may do; may be given several times', readGrant);

/** `codehost=issues.read,issues.write` */
function readGrant(text: string, before: Grant[] = []): Grant[] {
  const [, platformId = '', list = ''] = /^([^=\s]+)=(\S+)$/.exec(text) ?? [];
  const scopes = list.split(',').filter((scope) => scope !== '');
  if (scopes.length === 0) throw new InvalidArgumentError('Write it as platform=scope,scope.');
  return [...before, { platformId, scopes }];
}

/**
 * Makes the key, lets the broker know the public half, and writes the profile to `path`, where no file may be yet. Throws
 * CommandFailed, and leaves nothing behind, when the broker refuses or the file cannot be written; WrongUsage for options that
 * contradict each other.
 */
export async function makeAgent(name: string, options: MakeOptions, path: string): Promise<MadeAgent> {
  if (options.invite !== undefined && (options.policy !== undefined || options.grant !== undefined))
    throw new WrongUsage('What an invited agent may do was said with the invite: leave out --policy and --grant.');
  const broker = options.invite === undefined ? await connectAsOwner(options) : connectAsNobody(options);
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const private_key = privateKey.export({ format: 'pem', type: 'pkcs8' });
  // Before the broker knows the key: an agent whose key could not be written down would be lost.
  reserve(path, { private_key });
  try {
    const pem = publicKey.export({ format: 'pem', type: 'spki' }) as string;
    const bound =
      options.invite === undefined
        ? await inviteAndBind(broker, name, options, pem)
        : await bind(broker, options.invite, pem);
    const [agent_id, owner_id, status] = [String(bound.agent_id), String(bound.owner_id), String(bound.status)];
    const url = givenUrl(options) ?? String(bound.proxy_url);
    writeFileSync(path, `${JSON.stringify({ url, agent_id, owner_id, private_key }, null, 2)}\n`, { mode: 0o600 });
    return { agent_id, owner_id, status, url };
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** An agent's name may be any text, a file's may not. */
export function fileNameOf(name: string): string {
  return name.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[.-]+|-+$/g, '') || 'agent';
}

/** Writes a file that was not there, for its owner alone. */
function reserve(path: string, content: object): void {
  const unwritable = (error: unknown) =>
    new CommandFailed(
      `The profile ${path} cannot be written (${(error as NodeJS.ErrnoException).code}). Name another file with --out.`,
    );
  try {
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

type Bound = Record<string, unknown>;

export async function makeInvite(broker: BrokerConnection, name: string, { policy, grant }: Terms): Promise<Bound> {
  return await broker.ask('POST', '/owner/invites', {
    agent_name: name,
    ...(policy !== undefined && { policy }),
    ...(grant !== undefined && { grants: grant }),
  });
}

/** The key goes the way of every invited agent's. An invite that nothing came of is taken back. */
async function inviteAndBind(broker: BrokerConnection, name: string, terms: Terms, pem: string): Promise<Bound> {
  const invite = await makeInvite(broker, name, terms);
  try {
    return await bind(broker, String(invite.bind_secret), pem);
  } catch (error) {
    await broker.ask('DELETE', `/owner/invites/${invite.id}`).catch(() => {});
    throw error;
  }
}

async function bind(broker: BrokerConnection, token: string, public_key_pem: string): Promise<Bound> {
  if (token.startsWith('inv_'))
    return await broker.ask('POST', '/v1/invites/bind', { bind_secret: token, public_key_pem });
  if (token.startsWith('abt_'))
    return await broker.ask('POST', '/v1/agents/bind', { bootstrap_token: token, public_key_pem });
  throw new WrongUsage('An invite begins with inv_, a bootstrap token with abt_; this is neither.');
}
