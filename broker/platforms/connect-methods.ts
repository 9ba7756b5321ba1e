/** How to connect a built-in platform: where its credentials are created, by which ways, and the fields of the platform's entry. */
import { BUILTIN_PLATFORMS } from './builtin.ts';
import { BUILTIN_NAMES, type BuiltinName } from './builtin-names.ts';
import { type GitHubSite, gitHubSite } from './github-site.ts';
import { presetsOf } from './presets.ts';

export type ConnectMethod = 'token' | 'oauth' | 'app';

/** The description of each way, for whoever chooses. */
export const CONNECT_METHODS: Readonly<Record<ConnectMethod, string>> = {
  token: 'paste a token',
  oauth: 'OAuth: you consent in the browser, and the broker keeps the tokens fresh',
  app: 'an App: the broker gets tokens for each call, limited to what it needs',
};

/** The name of a platform's credential, and the page or the command that creates it; for a command, a heading of docs/platforms.md has the instructions. */
const CREDENTIALS: Record<BuiltinName, { what: string; made: string }> = {
  github: { what: 'a personal access token', made: 'https://github.com/settings/personal-access-tokens/new' },
  slack: { what: 'a bot or user token', made: 'https://api.slack.com/apps' },
  gmail: { what: 'an access token', made: 'https://console.cloud.google.com/apis/credentials' },
  'google-calendar': { what: 'an access token', made: 'https://console.cloud.google.com/apis/credentials' },
  notion: { what: "an integration's token", made: 'https://www.notion.so/profile/integrations' },
  linear: { what: 'a personal API key', made: 'https://linear.app/settings/account/security' },
  jira: { what: '"e-mail:API token"', made: 'https://id.atlassian.com/manage-profile/security/api-tokens' },
  stripe: { what: 'a restricted or secret key', made: 'https://dashboard.stripe.com/apikeys' },
  openai: { what: 'an API key', made: 'https://platform.openai.com/api-keys' },
  anthropic: { what: 'an API key', made: 'https://console.anthropic.com/settings/keys' },
  npm: { what: 'an access token', made: 'https://www.npmjs.com/settings/~/tokens' },
  kubernetes: { what: 'a token of a service account', made: 'kubectl create token NAME' },
  s3: {
    what: 'an access key as {"access_key_id": "…", "secret_access_key": "…"}',
    made: 'https://console.aws.amazon.com/iam',
  },
};

/** The pages where an OAuth client is registered. */
const REGISTERED: Partial<Record<BuiltinName, string>> = {
  github: 'https://github.com/settings/applications/new',
  slack: 'https://api.slack.com/apps',
  gmail: 'https://console.cloud.google.com/apis/credentials',
  'google-calendar': 'https://console.cloud.google.com/apis/credentials',
  notion: 'https://www.notion.so/profile/integrations',
  linear: 'https://linear.app/settings/api/applications/new',
  jira: 'https://developer.atlassian.com/console/myapps',
};

/** Returns the page where the broker is registered as a client; undefined for a platform without OAuth. */
export const registrationOf = (name: BuiltinName): string | undefined => REGISTERED[name];

/** Returns where a credential is created, as the end of a sentence. */
export const credentialPlaceText = (made: string): string =>
  made.startsWith('https:') ? `at ${made}` : `with ${made} (docs/platforms.md)`;

/** Returns the credential of a platform. `site`: of a GitHub other than github.com. */
export function credentialOf(name: BuiltinName, site?: GitHubSite | undefined): { what: string; made: string } {
  const { what, made } = CREDENTIALS[name];
  return { what, made: site ? `${site.web}/settings/personal-access-tokens/new` : made };
}

/** Returns the prefix of a built-in platform's scopes, such as `codehost`. */
export const defaultId = (name: BuiltinName): string =>
  Object.keys(BUILTIN_PLATFORMS[name].scopes)[0]?.split(':')[0] ?? name;

/** Returns the ways of a platform, the simplest first. */
export function connectMethodsOf(name: BuiltinName): ConnectMethod[] {
  const { oauth, app_permissions } = BUILTIN_PLATFORMS[name];
  return ['token', ...(oauth ? (['oauth'] as const) : []), ...(app_permissions ? (['app'] as const) : [])];
}

/** Whether the built-in manifest has only a placeholder as its address. */
export const needsAddress = (name: BuiltinName): boolean =>
  URL.parse(BUILTIN_PLATFORMS[name].base_url)?.hostname.endsWith('.invalid') === true;

export const isBuiltin = (name: string): name is BuiltinName => (BUILTIN_NAMES as readonly string[]).includes(name);

/**
 * Returns the scopes of the platform that presets need; without `names`, those of all presets except `everything`: nobody should have to consent to deleting
 * repositories for reading issues. Unknown names are ignored.
 */
export function consentFor(name: BuiltinName, names?: readonly string[] | undefined): string[] {
  const manifest = BUILTIN_PLATFORMS[name];
  const presets = presetsOf(manifest);
  const wanted = names ?? presets.map((one) => one.name).filter((one) => one !== 'everything');
  const scopes = presets.filter((one) => wanted.includes(one.name)).flatMap((one) => one.scopes);
  const needs: Readonly<Record<string, readonly string[]>> = manifest.needs ?? {};
  return [...new Set(scopes.flatMap((scope) => needs[scope]?.[0] ?? []))].sort();
}

/** `overrides`: the fields of the platform's entry for this address. */
export type PlatformLocation = { baseUrl: string; site: GitHubSite | undefined; overrides: Record<string, unknown> };

/** Thrown when a text is not an address of such a platform; the message is a phrase for a person. */
export class WrongPlatformAddress extends Error {}

/**
 * Returns the address of the platform. For GitHub, `url` may be that of the web site or of the API, and everything else on the same host is derived from it;
 * for others, only URLs below the base URL are. Throws NoSuchPlace.
 */
export function locatePlatform(name: BuiltinName, url: string | undefined): PlatformLocation {
  const own = BUILTIN_PLATFORMS[name].base_url;
  if (url === undefined) {
    if (needsAddress(name))
      throw new WrongPlatformAddress(`every customer of ${name} has a different address: name it`);
    return { baseUrl: own, site: undefined, overrides: {} };
  }
  const parsed = URL.parse(url);
  if (!parsed) throw new WrongPlatformAddress(`${url} is no address; write https://host/path`);
  const given = parsed.href.replace(/\/+$/, '');
  if (given === own) return { baseUrl: own, site: undefined, overrides: {} };
  if (name === 's3') return { baseUrl: given, site: undefined, overrides: { base_url: given, auth: signedAt(parsed) } };
  if (name !== 'github')
    return { baseUrl: given, site: undefined, overrides: { base_url: given, ...movedAccount(name, given) } };
  const site = gitHubAt(parsed);
  if (site.api === own) return { baseUrl: own, site: undefined, overrides: {} };
  const overrides = {
    base_url: site.api,
    git_base_url: site.web,
    oauth: {
      ...BUILTIN_PLATFORMS.github.oauth,
      authorization_endpoint: `${site.web}/login/oauth/authorize`,
      token_endpoint: `${site.web}/login/oauth/access_token`,
      account: { url: `${site.api}/user`, pointer: '/login' },
    },
  };
  return { baseUrl: site.api, site, overrides };
}

/**
 * Moves the account endpoint with the base URL: without it, the account would not be queried, and a token that Slack refuses with a 200 would seem to be
 * accepted.
 */
function movedAccount(name: BuiltinName, baseUrl: string): { oauth?: object } {
  const { base_url, oauth } = BUILTIN_PLATFORMS[name];
  if (!oauth?.account?.url.startsWith(`${base_url}/`)) return {};
  return {
    oauth: { ...oauth, account: { ...oauth.account, url: baseUrl + oauth.account.url.slice(base_url.length) } },
  };
}

/** GitHub Enterprise Cloud with data residency has its API on a separate host, Enterprise Server under a path. */
function gitHubAt({ origin, hostname, pathname }: URL): GitHubSite {
  const web = hostname.startsWith('api.') ? origin.replace('//api.', '//') : origin;
  if (!['', '/', '/api/v3', '/api/v3/'].includes(pathname))
    throw new WrongPlatformAddress(`a GitHub has its API at ${origin}/api/v3, or at a host that begins with "api."`);
  const site = gitHubSite(web);
  if (!site)
    throw new WrongPlatformAddress(`${web} is not the address of a GitHub, such as https://github.acme.example`);
  return site;
}

/** AWS addresses contain the region that requests are signed for; other stores accept the default region of AWS. */
function signedAt({ hostname }: URL): { type: 'aws_sigv4'; region: string; service: 's3'; unsigned_payload: true } {
  const [, region = 'us-east-1'] = /(?:^|\.)s3[.-]([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/.exec(hostname) ?? [];
  return { type: 'aws_sigv4', region, service: 's3', unsigned_payload: true };
}

/** How the broker gets tokens when none is pasted. */
export type TokenSource =
  | { way: 'oauth'; clientId: string; scopes: readonly string[] }
  | { way: 'app'; appId: string; installationId: string };

/** Returns `auth` of a platform's entry, with secrets by the references that an exported governance file uses. */
export function authFor(platformId: string, source: TokenSource): Record<string, unknown> {
  const reference = (what: string) => ({
    env: `${platformId}_${what}`
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]/g, '_')
      .replace(/^(?=\d)/, '_'),
  });
  if (source.way === 'app')
    return {
      type: 'app',
      app_id: source.appId,
      private_key: reference('private_key'),
      installation_id: source.installationId,
    };
  return {
    type: 'oauth2',
    client_id: source.clientId,
    client_secret: reference('client_secret'),
    redirect_uri: 'organisation',
    ...(source.scopes.length > 0 && { scopes: [...source.scopes] }),
  };
}
