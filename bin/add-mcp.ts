/** `agent-broker add-mcp`: adds an MCP server as a platform with a tested connection, which is kept only if the server accepts it. */

import { type BrokerConnection, type ConnectionOptions, connectAsOwner } from './connection.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import {
  described,
  listPlatforms,
  makeConnection,
  type OwnedConnection,
  type OwnedPlatform,
  readPlatform,
  type Tested,
  testConnection,
} from './owner-platforms.ts';
import { waitUntilConnected } from './platform-auth.ts';
import { readSecret } from './read-secret.ts';

export type AddMcpOptions = ConnectionOptions & {
  id?: string;
  label?: string;
  tokenStdin?: boolean;
  tokenEnv?: string;
  header?: string;
  clientId?: string;
  issuer?: string;
  dynamic?: boolean;
  json?: boolean;
};

export type AddedMcp = {
  platform: string;
  base_url: string;
  connection: string;
  connection_id: string;
  /** The scope of all of the server's tools. */
  scope: string;
  test: Tested;
};

const FLAGS = '--token-stdin < FILE, or --token-env NAME';
/** Labels of a host name that are not the name of the service. */
const GENERIC = new Set(['mcp', 'api', 'www', 'server', 'app', 'ai', 'remote']);

/** Adds the platform and the connection. `say` shows a line to the person while the command waits for them. Throws CommandFailed; WrongUsage. */
export async function addMcpServer(
  address: string,
  options: AddMcpOptions,
  say: (text: string) => void,
): Promise<AddedMcp> {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol)) throw new WrongUsage(`${address} is no address; write https://host/mcp`);
  const isToken = options.tokenStdin === true || options.tokenEnv !== undefined;
  const ofOAuth = [options.clientId, options.issuer, options.dynamic].some((one) => one !== undefined);
  if (isToken && ofOAuth)
    throw new WrongUsage('Choose a token or OAuth: --client-id, --issuer and --dynamic are of OAuth.');
  if (!isToken && options.header !== undefined) throw new WrongUsage(`--header is for a token: ${FLAGS}.`);
  const platformId = options.id ?? nameIn(url.hostname);
  if (platformId === undefined) throw new WrongUsage(`${url.host} has no name: choose an id, --id NAME.`);
  const scope = `${platformId}:tools`;
  const broker = await connectAsOwner(options);
  const known = (await listPlatforms(broker)).find(({ platform_id }) => platform_id === platformId);
  const unfinished = known && unfinishedAt(known, address, options);
  if (known) await checkSameAuth(broker, known, authOf(options, isToken));
  const secret = isToken
    ? await readSecret({ stdin: options.tokenStdin, env: options.tokenEnv }, 'the token', FLAGS)
    : undefined;
  if (!known) {
    const entry = { kind: 'mcp', base_url: address, auth: authOf(options, isToken), scopes: { [scope]: ['tool *'] } };
    await broker.ask('POST', '/owner/platforms', { platform: platformId, entry });
  }
  const undo = () => (known ? undefined : broker.ask('DELETE', `/owner/platforms/${platformId}`));
  const { connection, test } = await connect(broker, { platformId, options, secret, unfinished, undo, say });
  const { id: connection_id, label } = connection;
  return { platform: platformId, base_url: address, connection: label, connection_id, scope, test };
}

/** Derives a name from the host: `mcp.linear.app` → `linear`. Undefined for an IP address, or a name of one label. */
function nameIn(hostname: string): string | undefined {
  if (/^[\d.]+$|:/.test(hostname)) return undefined;
  const [, ...labels] = hostname.split('.').reverse();
  return labels.find((one) => !GENERIC.has(one) && /^[a-z][a-z0-9-]*$/.test(one));
}

/**
 * Returns the OAuth connection that was begun and not finished, to continue it. Throws CommandFailed where another platform has the id, or the connection
 * is complete.
 */
function unfinishedAt(known: OwnedPlatform, address: string, { label }: AddMcpOptions): OwnedConnection {
  const another = 'To add another one, choose an id: --id NAME.';
  if (known.kind !== 'mcp' || known.base_url !== address)
    throw new CommandFailed(`There is a platform ${described(known)} already. ${another}`);
  const found = known.connections.find((one) => (label === undefined ? one.default : one.label === label));
  if (found?.connects_by === 'oauth' && found.state !== 'connected') return found;
  throw new CommandFailed(
    `The platform ${described(known)} is there already${found ? `, and its connection "${found.label}" is ${found.state.replaceAll('_', ' ')}` : ''}. ${another}`,
  );
}

/** Throws CommandFailed where the options describe another authentication than that of the platform, which this command does not change. */
async function checkSameAuth(
  broker: BrokerConnection,
  known: OwnedPlatform,
  wanted: Record<string, unknown>,
): Promise<void> {
  const auth: Record<string, unknown> = (await readPlatform(broker, known.platform_id)).manifest.auth;
  const differing = Object.keys(wanted).find((name) => wanted[name] !== auth[name]);
  if (differing === undefined) return;
  const stored = typeof auth[differing] === 'string' ? `"${auth[differing]}"` : 'not set';
  throw new CommandFailed(
    `The platform ${described(known)} is there already, and ${differing} of its auth is ${stored}, not "${wanted[differing]}". Change it in the console, under Connections, then run the command again; or choose another id: --id NAME.`,
  );
}

function authOf({ header, clientId, issuer, dynamic }: AddMcpOptions, isToken: boolean): Record<string, unknown> {
  if (isToken) return header === undefined ? { type: 'bearer' } : { type: 'header', name: header };
  return {
    type: 'oauth2',
    ...(clientId !== undefined && { client_id: clientId }),
    ...(issuer !== undefined && { issuer }),
    ...(dynamic && { registration: 'dynamic' }),
  };
}

type Connecting = {
  platformId: string;
  options: AddMcpOptions;
  secret: string | undefined;
  unfinished: OwnedConnection | undefined;
  undo(): unknown;
  say(text: string): void;
};

/**
 * Once the person was shown where to consent, the connection is kept, so that the same command continues it; a connection with a token that the
 * server refuses is removed. Throws CommandFailed.
 */
async function connect(
  broker: BrokerConnection,
  { platformId, options, secret, unfinished, undo, say }: Connecting,
): Promise<{ connection: { id: string; label: string }; test: Tested }> {
  const label = options.label ?? platformId;
  let made: OwnedConnection | undefined;
  let isOffered = false;
  const offer = (text: string): void => {
    isOffered = true;
    say(text);
  };
  try {
    const body = { platform: platformId, label, ...(secret !== undefined && { secret }) };
    made = unfinished ?? (await makeConnection(broker, body));
    if (options.clientId !== undefined)
      say(`The client ${options.clientId} needs the redirect URI ${made.redirect_uri} at the authorization server.`);
    if (secret === undefined) await waitUntilConnected(broker, made.id, offer);
    const test = await testConnection(broker, made.id);
    if (test.ok) return { connection: made, test };
    const kept = isOffered
      ? `The connection "${label}" is kept: run the same command again to try again.`
      : 'Nothing was kept.';
    throw new CommandFailed(`${test.detail}\n${kept}`);
  } catch (error) {
    if (isOffered || unfinished) throw error;
    if (made) await broker.ask('DELETE', `/owner/connections/${made.id}`);
    await undo();
    if (secret !== undefined || !(error instanceof CommandFailed)) throw error;
    throw new CommandFailed(
      `${error.message}\nNothing was kept. A server that takes a token: ${FLAGS}. One that does not say where it signs in: --issuer URL.`,
    );
  }
}
