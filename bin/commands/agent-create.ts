import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import {
  type BrokerConnection,
  type ConnectionOptions,
  connectAsNobody,
  connectAsOwner,
  dataFolder,
  givenUrl,
  print,
  withConnection,
} from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { mcpSnippets } from '../mcp-snippets.ts';

type Grant = { platformId: string; scopes: string[] };
type Options = ConnectionOptions & {
  policy?: string;
  grant?: Grant[];
  invite?: string;
  out?: string;
  json?: boolean;
};

export function addAgentCreateCommand(agent: Command): void {
  withTerms(
    agent
      .command('create <name>')
      .description(
        'make a key pair here, make the agent at the broker, write its profile, and show what MCP clients need',
      ),
  )
    .option('--invite <token>', 'an invite (inv_…) or a bootstrap token (abt_…), instead of an owner session')
    .option('--out <file>', 'where the profile goes; otherwise profiles/NAME.json in the data folder')
    .option('--json', 'print JSON')
    .action(create);

  withTerms(agent.command('invite <name>').description('make an invite, for an agent on a machine without an owner'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => {
      const invite = await makeInvite(await connectAsOwner(options), name, options);
      const where = `agent-broker agent create ${fileNameOf(name)} --url ${new URL(String(invite.bind_url)).origin} --invite ${invite.bind_secret}`;
      print(
        options,
        invite,
        () =>
          `${invite.bind_secret}\nShown once, good once, until ${invite.expires_at}. On the agent's machine:\n  ${where}`,
      );
    });
}

/** What an agent is to be. */
const withTerms = (command: Command): Command =>
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

async function create(name: string, options: Options): Promise<void> {
  if (options.invite !== undefined && (options.policy !== undefined || options.grant !== undefined))
    throw new WrongUsage('What an invited agent may do was said with the invite: leave out --policy and --grant.');
  const path = resolve(options.out ?? join(dataFolder(options), 'profiles', `${fileNameOf(name)}.json`));
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
    const url = givenUrl(options) ?? String(bound.proxy_url);
    const { agent_id, owner_id } = bound;
    writeFileSync(path, `${JSON.stringify({ url, agent_id, owner_id, private_key }, null, 2)}\n`, { mode: 0o600 });
    const snippets = mcpSnippets(path);
    const shown = { name, agent_id, owner_id, status: bound.status, url, profile: path, snippets };
    print(options, shown, () => inWords(name, String(agent_id), path));
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** An agent's name may be any text, a file's may not. */
function fileNameOf(name: string): string {
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

async function makeInvite(broker: BrokerConnection, name: string, { policy, grant }: Options): Promise<Bound> {
  return await broker.ask('POST', '/owner/invites', {
    agent_name: name,
    ...(policy !== undefined && { policy }),
    ...(grant !== undefined && { grants: grant }),
  });
}

/** The key goes the way of every invited agent's. An invite that nothing came of is taken back. */
async function inviteAndBind(broker: BrokerConnection, name: string, options: Options, pem: string): Promise<Bound> {
  const invite = await makeInvite(broker, name, options);
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

function inWords(name: string, agentId: string, path: string): string {
  const snippets = mcpSnippets(path).map(
    ({ client, how, text }) => `${client}: ${how}\n\n${text.replaceAll(/^/gm, '  ')}\n`,
  );
  return [
    `${name} (${agentId}) can sign. Its key is in ${path}, which only you can read, and nowhere else.`,
    '',
    ...snippets,
    `Whether everything is as it should be: agent-broker doctor --profile ${path}`,
  ].join('\n');
}
