/** Sealed secrets: an owner authorises one, and the person who has it sends it encrypted, without any other access. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { type ConnectionOptions, connectAsNobody, connectAsOwner, print, withConnection } from '../connection.ts';
import { CommandFailed, WrongUsage, whereMissing } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { PROGRAM } from '../program-name.ts';
import { readText, textOfBytes } from '../read-text.ts';
import { commandLine } from '../server-entry.ts';

type AuthorizeOptions = ConnectionOptions & { scopes?: string; label?: string; out?: string; json?: boolean };
type SendOptions = { from?: string; json?: boolean };

export function addSecretCommands(program: Command): void {
  const secret = program.command('secret').description('sealed secrets: credentials from senders without other access');

  withConnection(
    secret
      .command('authorize <agent> <platform>')
      .description(
        'authorise one sealed secret for an agent, by its name or id, and a platform, within a day; writes a file for the sender',
      ),
  )
    .option('--scopes <scope,…>', 'scopes for the agent, if it has no grant on the platform')
    .option('--label <name>', 'label of the connection')
    .option('--out <file>', 'file of the authorisation; default: PLATFORM.authorization.json here')
    .option('--json', 'print JSON')
    .action(authorize);

  withConnection(secret.command('list').description('list the authorised and the received secrets'))
    .option('--json', 'print JSON')
    .action(async (options: ConnectionOptions & { json?: boolean }) => {
      const broker = await connectAsOwner(options);
      const { authorizations } = (await broker.ask('GET', '/owner/secret-authorizations')) as {
        authorizations: Listed[];
      };
      print(options, authorizations, () => authorizations.map(inOneLine).join('\n') || 'None were authorised.');
    });

  withConnection(secret.command('revoke <id>').description('withdraw an unused authorisation'))
    .option('--json', 'print JSON')
    .action(async (id: string, options: ConnectionOptions & { json?: boolean }) => {
      const broker = await connectAsOwner(options);
      const gone = await broker
        .ask('DELETE', `/owner/secret-authorizations/${encodeURIComponent(id)}`)
        .catch(
          whereMissing(
            `There is no authorisation ${id} that waits for a secret. All of them: ${broker.command('secret list')}`,
          ),
        );
      print(options, gone, () => `${id} is revoked.`);
    });

  secret
    .command('send <authorization-file>')
    .description('seal a secret, read from standard input, and send it to the broker that authorised it')
    .option('--from <file>', 'read the secret from this file instead')
    .option('--json', 'print JSON')
    .action(sendSecret);
}

type Listed = Record<'id' | 'status' | 'agent' | 'platform' | 'label' | 'expires_at', string>;

const inOneLine = ({ id, status, agent, platform, label, expires_at }: Listed): string =>
  `${id}  ${status.padEnd(7)}  ${label} on ${platform}, for the agent ${agent}${status === 'open' ? `, until ${expires_at}` : ''}`;

async function authorize(given: string, platform: string, options: AuthorizeOptions): Promise<void> {
  const { agentIdOf } = await import('../find-agent.ts');
  const api = await openOwnerApi(options);
  const { broker } = api;
  const agent = await agentIdOf(api, given);
  const made = await broker.ask('POST', '/owner/secret-authorizations', {
    agent,
    platform,
    ...(options.label !== undefined && { label: options.label }),
    ...(options.scopes !== undefined && { scopes: options.scopes.split(',').filter((scope) => scope !== '') }),
  });
  const path = resolve(options.out ?? `${platform}.authorization.json`);
  const { authorization, agent_id, bind_url, expires_at } = made;
  const file = { url: new URL(String(bind_url)).origin, agent_id, platform_id: platform, authorization };
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    await broker.ask('DELETE', `/owner/secret-authorizations/${made.id}`).catch(() => {});
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailed(
      code === 'EEXIST'
        ? `There is a file at ${path} already, which is kept. Name another one with --out.`
        : `The authorisation cannot be written to ${path} (${code}). Name another file with --out.`,
    );
  }
  const { authorization: _token, ...shown } = made;
  print(
    options,
    { ...shown, file: path },
    () =>
      `${path} is valid once, until ${expires_at}, and for nothing else. The person who has the secret runs:\n  ${PROGRAM} secret send ${commandLine([path])} --from SECRET-FILE`,
  );
}

async function sendSecret(path: string, options: SendOptions): Promise<void> {
  const { url, agent_id, platform_id, authorization } = readAuthorization(path);
  const secret = await readSecret(options.from);
  const broker = await connectAsNobody({ url });
  const { keys } = (await broker.ask('GET', '/.well-known/svc-secret-keys.json')) as {
    keys?: Record<string, string>[];
  };
  const key = keys?.find(({ alg, use }) => alg === 'ECDH-ES' && use === 'enc');
  if (!key?.kid) throw new CommandFailed(`${url} publishes no key that a secret can be sealed to. Is it the broker?`);
  const { CompactEncrypt, importJWK } = await import('jose');
  const encrypted_secret = await new CompactEncrypt(Buffer.from(JSON.stringify({ authorization, secret })))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
    .encrypt(await importJWK(key, 'ECDH-ES'));
  const bound = await broker.ask('POST', '/v1/bind-secret', { agent_id, platform_id, encrypted_secret });
  print(options, bound, () => `${agent_id} can use it on ${platform_id} from now on. ${path} is used up.`);
}

type Authorization = Record<'url' | 'agent_id' | 'platform_id' | 'authorization', string>;

function readAuthorization(path: string): Authorization {
  let file: Partial<Record<string, unknown>> | null;
  try {
    file = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw new CommandFailed(`${path} cannot be read as an authorisation. "${PROGRAM} secret authorize" writes one.`);
  }
  for (const name of ['url', 'agent_id', 'platform_id', 'authorization'])
    if (typeof file?.[name] !== 'string')
      throw new CommandFailed(`${path} has no "${name}". "${PROGRAM} secret authorize" writes such files.`);
  return file as Authorization;
}

/** Reads the secret, never from arguments, which other processes and the shell's history can read. Strips one trailing newline. */
async function readSecret(from: string | undefined): Promise<string> {
  if (from === undefined && process.stdin.isTTY)
    throw new WrongUsage('Send the secret to standard input (< FILE, or through a pipe), or name a file with --from.');
  const secret =
    from === undefined
      ? textOfBytes(await buffer(process.stdin), 'The secret on standard input')
      : readText(from, `The file ${from}`);
  return secret.replace(/\r?\n$/, '');
}
