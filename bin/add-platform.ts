/** `agent-broker add`: adds a built-in platform with a tested connection, which is kept only if the platform accepts it. */
import { randomBytes } from 'node:crypto';
import type { BuiltinName } from '../broker/platforms/builtin-names.ts';
import {
  CONNECT_METHODS,
  type ConnectMethod,
  connectMethodsOf,
  credentialOf,
  credentialPlaceText,
  defaultId,
  type PlatformLocation,
} from '../broker/platforms/connect-methods.ts';
import { placeOf } from './add-entry.ts';
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
  type WholePlatform,
} from './owner-platforms.ts';
import { type AuthOptions, checkExistingAuth, type NewAuth, newAuth, waitUntilConnected } from './platform-auth.ts';
import { readSecret } from './read-secret.ts';
import { canAsk, choose } from './terminal/prompt.ts';

export type AddOptions = ConnectionOptions &
  AuthOptions & {
    id?: string;
    label?: string;
    baseUrl?: string;
    replace?: boolean;
    tokenStdin?: boolean;
    tokenEnv?: string;
    oauth?: boolean;
    app?: boolean;
    json?: boolean;
  };

export type Added = {
  builtin: BuiltinName;
  platform: string;
  base_url: string;
  connection: string;
  connection_id: string;
  made: { platform: boolean; connection: boolean };
  test: Tested;
  presets: { name: string; scopes: string[] }[];
};

const FLAGS = '--token-stdin < FILE, or --token-env NAME';

/** Adds the platform and the connection. `say` shows a line to the person while the command waits for them. Throws CommandFailed; WrongUsage. */
export async function addPlatform(
  builtin: BuiltinName,
  options: AddOptions,
  say: (text: string) => void,
): Promise<Added> {
  const place = placeOf(builtin, options.baseUrl);
  const broker = await connectAsOwner(options);
  const known = findKnown(builtin, options, place, await listPlatforms(broker));
  const platformId = known?.platform_id ?? options.id ?? defaultId(builtin);
  const target = findTarget(known, platformId, builtin, options);
  const whole = known && (await readPlatform(broker, known.platform_id));
  const way = await wayOf(builtin, whole, options);
  if (whole) checkExistingAuth(platformId, whole.manifest.auth, options, say);
  // Asks for everything that may be missing before anything is created.
  const auth: NewAuth | undefined = known
    ? undefined
    : await newAuth(way, { builtin, place, broker, platformId, options, say });
  const secret = way === 'token' ? await tokenFor(builtin, place, options) : await installationFor(way, known, options);
  if (!known) {
    const entry = { use: builtin, ...place.overrides, ...(auth && { auth: auth.auth }) };
    await broker.ask('POST', '/owner/platforms', {
      platform: platformId,
      entry,
      ...(auth && { secrets: auth.secrets }),
    });
  }
  const undo = known ? undefined : () => broker.ask('DELETE', `/owner/platforms/${platformId}`);
  const { connection, test } = await connectAndTest(broker, { platformId, target, secret, way }, undo, say);
  if (!test.ok && way === 'oauth')
    throw new CommandFailed(
      `${test.detail}\nThe connection "${connection.label}" is kept: run the same command again to try again.`,
    );
  if (!test.ok) {
    const { what, made } = credentialOf(builtin, place.site);
    throw new CommandFailed(
      `${test.detail}\nNothing was kept. Make ${what} ${credentialPlaceText(made)}, then try again. (Address: ${known?.base_url ?? place.baseUrl})`,
    );
  }
  const { presets, base_url } = await readPlatform(broker, platformId);
  return {
    builtin,
    platform: platformId,
    base_url,
    connection: connection.label,
    connection_id: connection.id,
    made: { platform: known === undefined, connection: target.replaces === undefined },
    test,
    presets,
  };
}

/** Returns the existing platform that the options mean, if there is one; never silently creates a second one. Throws CommandFailed. */
function findKnown(
  builtin: BuiltinName,
  { id, baseUrl }: AddOptions,
  place: PlatformLocation,
  platforms: readonly OwnedPlatform[],
): OwnedPlatform | undefined {
  const alike = platforms.filter((one) => one.builtin === builtin);
  const wanted = id ?? (alike.length === 1 ? alike[0]?.platform_id : defaultId(builtin));
  const known = platforms.find(({ platform_id }) => platform_id === wanted);
  const another = `To add another one, choose an id: --id NAME.`;
  if (known && known.builtin !== builtin)
    throw new CommandFailed(`There is a platform ${described(known)} already, which is no ${builtin}. ${another}`);
  if (known && baseUrl !== undefined && known.base_url !== place.baseUrl)
    throw new CommandFailed(`There is a platform ${described(known)} already, and not at ${place.baseUrl}. ${another}`);
  if (!known && id === undefined && alike.length > 1)
    throw new CommandFailed(
      `Several platforms are ${builtin} already: ${alike.map(described).join(', ')}. Say which one with --id.`,
    );
  return known;
}

/** `replaces`: the existing connection whose credential is replaced. */
type Target = { label: string; replaces: OwnedConnection | undefined };

/** Chooses the connection to create or replace. Throws CommandFailed where a connection exists and the options do not say what to do with it. */
function findTarget(
  known: OwnedPlatform | undefined,
  platformId: string,
  builtin: BuiltinName,
  options: AddOptions,
): Target {
  const connections = known?.connections ?? [];
  const named = options.label === undefined ? undefined : connections.find(({ label }) => label === options.label);
  const standard = connections.find((one) => one.default) ?? connections[0];
  const unfinished = options.label === undefined ? standard : named;
  // An unfinished OAuth connection is continued.
  if (unfinished?.connects_by === 'oauth' && unfinished.state !== 'connected')
    return { label: unfinished.label, replaces: unfinished };
  const there = options.label === undefined ? standard : named;
  if (there && options.replace) return { label: there.label, replaces: there };
  if (options.replace)
    throw new CommandFailed(
      `There is no connection ${options.label ?? `to ${builtin}`} whose credential could be replaced.`,
    );
  if (there && known)
    throw new CommandFailed(
      `The platform ${described(known)} has the connection "${there.label}" already (${there.state.replaceAll('_', ' ')}). Another credential for it: --replace${options.label === undefined ? '' : ` --label ${there.label}`}. To add another account: --label NAME.`,
    );
  // Labels are unique within the whole organisation.
  const label = platformId === defaultId(builtin) ? builtin : `${builtin}-${platformId}`;
  return { label: options.label ?? label, replaces: undefined };
}

async function wayOf(
  builtin: BuiltinName,
  known: WholePlatform | undefined,
  options: AddOptions,
): Promise<ConnectMethod> {
  const isToken = options.tokenStdin === true || options.tokenEnv !== undefined;
  const asked = options.oauth ? 'oauth' : options.app ? 'app' : isToken ? 'token' : undefined;
  if ([options.oauth, options.app, isToken].filter(Boolean).length > 1)
    throw new WrongUsage('Choose one of a token, --oauth and --app.');
  if (known) {
    const { type } = known.manifest.auth;
    const way = type === 'oauth2' ? 'oauth' : type === 'app' ? 'app' : 'token';
    if (asked !== undefined && asked !== way)
      throw new CommandFailed(
        `The platform ${described(known)} takes ${CONNECT_METHODS[way]}. For another way choose an id: --id NAME.`,
      );
    return way;
  }
  const ways = connectMethodsOf(builtin);
  if (asked !== undefined && !ways.includes(asked))
    throw new WrongUsage(`${builtin} is connected by: ${ways.join(', ')}.`);
  if (asked !== undefined || ways.length === 1 || !canAsk()) return asked ?? 'token';
  return await choose(
    `How is ${builtin} connected?`,
    ways.map((value) => ({ value, text: CONNECT_METHODS[value] })),
  );
}

async function tokenFor(builtin: BuiltinName, { site }: PlatformLocation, options: AddOptions): Promise<string> {
  const { what, made } = credentialOf(builtin, site);
  return await readSecret({ stdin: options.tokenStdin, env: options.tokenEnv }, what, FLAGS, credentialPlaceText(made));
}

/** Returns the installation id for another connection of an existing App: each connection is a different installation. */
async function installationFor(
  way: ConnectMethod,
  known: OwnedPlatform | undefined,
  { installationId }: AddOptions,
): Promise<string | undefined> {
  if (way !== 'app' || !known) return undefined;
  if (installationId === undefined)
    throw new WrongUsage(
      'Say which installation of the App: --installation-id, the number that its address ends with.',
    );
  return installationId;
}

/** A new credential is tested on a connection of its own, so that an invalid one replaces nothing. */
async function connectAndTest(
  broker: BrokerConnection,
  {
    platformId,
    target,
    secret,
    way,
  }: { platformId: string; target: Target; secret: string | undefined; way: ConnectMethod },
  undo: (() => Promise<unknown>) | undefined,
  say: (text: string) => void,
): Promise<{ connection: { id: string; label: string }; test: Tested }> {
  const { replaces } = target;
  if (way === 'oauth') {
    const connection = replaces ?? (await makeConnection(broker, { platform: platformId, label: target.label }));
    await waitUntilConnected(broker, connection.id, say);
    return { connection, test: await testConnection(broker, connection.id) };
  }
  const label = replaces ? `new-credential-${randomBytes(4).toString('hex')}` : target.label;
  const body = {
    platform: platformId,
    label,
    ...(secret !== undefined && { secret }),
    ...(replaces && { default: false }),
  };
  let made: { id: string; label: string } | undefined;
  let isKept = false;
  try {
    made = await makeConnection(broker, body);
    const test = await testConnection(broker, made.id);
    if (replaces && test.ok) await broker.ask('POST', `/owner/connections/${replaces.id}/secret`, { secret });
    isKept = test.ok && !replaces;
    return { connection: replaces ?? made, test };
  } finally {
    if (made && !isKept) await broker.ask('DELETE', `/owner/connections/${made.id}`);
    if (!isKept && !replaces) await undo?.();
  }
}
