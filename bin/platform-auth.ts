/** Builds the `auth` of a new platform (an OAuth client or an App), and waits for a person in a browser. */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { BUILTIN_PLATFORMS } from '../broker/platforms/builtin.ts';
import type { BuiltinName } from '../broker/platforms/builtin-names.ts';
import { authFor, type ConnectMethod, consentFor, type PlatformLocation } from '../broker/platforms/connect-methods.ts';
import { presetsOf } from '../broker/platforms/presets.ts';

import { commandWith, type Reached } from './command-with.ts';
import type { BrokerConnection } from './connection.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { readSecret } from './read-secret.ts';
import { ask, canAsk } from './terminal/prompt.ts';

export type AuthOptions = {
  clientId?: string;
  clientSecretStdin?: boolean;
  clientSecretEnv?: string;
  appId?: string;
  keyFile?: string;
  installationId?: string;
  for?: string[];
  org?: string;
  wait?: boolean;
};

export type NewAuth = { auth: Record<string, unknown>; secrets: Record<string, string> };

type Adding = {
  builtin: BuiltinName;
  place: PlatformLocation;
  broker: BrokerConnection;
  platformId: string;
  options: AuthOptions;
  say: (text: string) => void;
};

/** Returns undefined for a token, because the built-in manifest defines how to send one. Throws CommandFailed; WrongUsage. */
export async function newAuth(way: ConnectMethod, adding: Adding): Promise<NewAuth | undefined> {
  if (way === 'oauth') return await oauthClient(adding);
  return way === 'app' ? await app(adding) : undefined;
}

/**
 * Checks options that describe the client or App of a platform that exists already: `add` does not change it, so another one is refused, and
 * what cannot be compared is reported. Throws CommandFailed.
 */
export function checkExistingAuth(
  platform: string,
  { type, client_id: clientId, app_id: appId }: ExistingAuth,
  options: AuthOptions & Reached,
  say: (text: string) => void,
): void {
  if (type !== 'oauth2' && type !== 'app') return;
  const isApp = type === 'app';
  const [what, given, stored] = isApp ? ['App', options.appId, appId] : ['client', options.clientId, clientId];
  const change = `To change it, run "${commandWith(options, 'export governance.yaml')}", correct the auth of ${platform} there, and apply that file; or add a second platform with --id NAME.`;
  if (given !== undefined && given !== stored)
    throw new CommandFailed(
      `The platform ${platform} has ${typeof stored === 'string' ? `the ${what} ${stored}` : `a ${what}`} already, which "add" does not replace. ${change}`,
    );
  const isRepeated = isApp
    ? options.keyFile !== undefined
    : options.clientSecretStdin === true || options.clientSecretEnv !== undefined || options.for !== undefined;
  if (isRepeated)
    say(
      `Continuing with the ${what} of the platform ${platform} as it is stored, with its secret and scopes. ${change}`,
    );
}

export type ExistingAuth = { type: string; client_id?: unknown; app_id?: unknown };

/** Returns the scopes to request at the platform's consent page. Throws WrongUsage. */
function neededFor(builtin: BuiltinName, names: readonly string[] | undefined): string[] {
  const known = presetsOf(BUILTIN_PLATFORMS[builtin]).map(({ name }) => name);
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new WrongUsage(`${builtin} has no preset "${unknown}". It has: ${known.join(', ')}.`);
  return consentFor(builtin, names);
}

async function oauthClient({ builtin, broker, platformId, options, say }: Adding): Promise<NewAuth> {
  const scopes = neededFor(builtin, options.for);
  const { redirect_uri: redirect } = await broker.ask('GET', '/owner/me');
  say(`Register the broker at ${builtin} as a web application with the redirect URI ${redirect}`);
  if (options.clientId === undefined && !canAsk())
    throw new WrongUsage(
      'Name the client id with --client-id, and where its secret is: --client-secret-stdin or --client-secret-env.',
    );
  const clientId = options.clientId ?? (await ask('Client id: '));
  if (clientId === '') throw new WrongUsage('A client id is needed.');
  const from = { stdin: options.clientSecretStdin, env: options.clientSecretEnv };
  const secret = await readSecret(
    from,
    'the client secret',
    '--client-secret-stdin < FILE, or --client-secret-env NAME',
  );
  return {
    auth: authFor(platformId, { way: 'oauth', clientId, scopes }),
    secrets: { client_secret: secret },
  };
}

async function app({ place, platformId, options, say }: Adding): Promise<NewAuth> {
  const { gitHubApp } = await import('./github-app/github-app.ts');
  const { app_id, key_file, installations, installation_url } = await gitHubApp(
    {
      host: place.site?.web ?? 'https://github.com',
      wait: options.wait !== false,
      ...(options.appId !== undefined && { appId: options.appId }),
      ...(options.keyFile !== undefined && { keyFile: options.keyFile }),
      ...(options.org !== undefined && { org: options.org }),
    },
    say,
  );
  const again = `--app --app-id ${app_id} --key-file ${key_file}`;
  const wanted = options.installationId;
  const [only, other] =
    wanted === undefined ? installations : installations.filter((one) => one.installation_id === wanted);
  if (!only)
    throw new CommandFailed(
      `The App ${app_id} is installed ${wanted === undefined ? 'nowhere yet' : `under no number ${wanted}`}. Install it at ${installation_url}, then run this again with ${again}.`,
    );
  if (other)
    throw new CommandFailed(
      `The App ${app_id} is installed at ${installations.map(({ account, installation_id: id }) => `${account} (${id})`).join(', ')}. Say which with ${again} --installation-id NUMBER.`,
    );
  return {
    auth: authFor(platformId, { way: 'app', appId: app_id, installationId: only.installation_id }),
    secrets: { private_key: readFileSync(key_file, 'utf8') },
  };
}

/** The broker's address for browsers, which may differ from the one that the command line uses. */
const publicUrl = async (broker: BrokerConnection): Promise<string> =>
  String((await broker.ask('GET', '/agent-manifest.json')).base_url);

const POLL_INTERVAL_MS = 1_000;
/** Equal to the broker's own limit for a consent that was begun. */
const TIMEOUT_MS = 10 * 60_000;

/** Prints the link for the consent, and waits until a person has completed it. Throws CommandFailed. */
export async function waitUntilConnected(
  broker: BrokerConnection,
  id: string,
  say: (text: string) => void,
): Promise<void> {
  const at = await publicUrl(broker);
  const link = broker.command('owner link');
  // Only the operator, on the machine of the broker, can create one.
  const how = link.includes(' --url ') ? '' : ` (${link} signs it in)`;
  const { authorization_url: url } = await broker.ask('POST', `/owner/connections/${id}/oauth/start`);
  say(`Open this in a browser that is signed in at ${at}${how}, and consent:\n\n  ${url}\n\nWaiting …`);
  const until = performance.now() + TIMEOUT_MS;
  while (performance.now() < until) {
    const { connections } = (await broker.ask('GET', '/owner/connections')) as {
      connections: { id: string; state: string }[];
    };
    if (connections.find((one) => one.id === id)?.state === 'connected') return;
    await pause(POLL_INTERVAL_MS);
  }
  throw new CommandFailed(
    'Nobody consented within ten minutes. The platform was added; run the same command again to continue.',
  );
}
