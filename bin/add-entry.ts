/** What `agent-broker add` knows of each built-in platform: where its credentials are made, and what stands in the platform's entry. */
import { BUILTIN_PLATFORMS } from '../broker/platforms/builtin.ts';
import type { BuiltinName } from '../broker/platforms/builtin-names.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { type GitHubSite, siteOf } from './github-api.ts';

export type Way = 'token' | 'oauth' | 'app';

/** What a credential is called there, and where it is made. */
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
  kubernetes: { what: 'a token of a service account', made: 'kubectl create token NAME (docs/platforms.md)' },
  s3: {
    what: 'an access key as {"access_key_id": "…", "secret_access_key": "…"}',
    made: 'https://console.aws.amazon.com/iam',
  },
};

/** `site`: of a GitHub that is not github.com. */
export function credentialOf(name: BuiltinName, site: GitHubSite | undefined): { what: string; made: string } {
  const { what, made } = CREDENTIALS[name];
  return { what, made: site ? `${site.web}/settings/personal-access-tokens/new` : made };
}

/** The id under which the scopes of a built-in platform are named, such as `codehost`. */
export const defaultId = (name: BuiltinName): string =>
  Object.keys(BUILTIN_PLATFORMS[name].scopes)[0]?.split(':')[0] ?? name;

export function waysOf(name: BuiltinName): Way[] {
  const { oauth, app_permissions } = BUILTIN_PLATFORMS[name];
  return ['token', ...(oauth ? (['oauth'] as const) : []), ...(app_permissions ? (['app'] as const) : [])];
}

/** Whether the built-in manifest leaves its address to be said. */
export const needsAddress = (name: BuiltinName): boolean =>
  URL.parse(BUILTIN_PLATFORMS[name].base_url)?.hostname.endsWith('.invalid') === true;

export type Place = { baseUrl: string; site: GitHubSite | undefined; overrides: Record<string, unknown> };

/**
 * Where the platform is. For GitHub a `url` may be that of the web site or of the API, and everything else that is on the same host follows
 * from it. Throws WrongUsage.
 */
export function placeOf(name: BuiltinName, url: string | undefined): Place {
  const own = BUILTIN_PLATFORMS[name].base_url;
  if (url === undefined) {
    if (needsAddress(name))
      throw new WrongUsage(`Every customer of ${name} has an address of its own: name it with --base-url.`);
    return { baseUrl: own, site: undefined, overrides: {} };
  }
  const parsed = URL.parse(url);
  if (!parsed) throw new WrongUsage(`--base-url ${url} is no address; write https://host/path.`);
  const given = parsed.href.replace(/\/+$/, '');
  if (given === own) return { baseUrl: own, site: undefined, overrides: {} };
  if (name === 's3') return { baseUrl: given, site: undefined, overrides: { base_url: given, auth: signedAt(parsed) } };
  if (name !== 'github') return { baseUrl: given, site: undefined, overrides: { base_url: given } };
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

/** GitHub Enterprise Cloud with data residency has a host of its own for the API, Enterprise Server a path. */
function gitHubAt({ origin, hostname, pathname }: URL): GitHubSite {
  const web = hostname.startsWith('api.') ? origin.replace('//api.', '//') : origin;
  if (!['', '/', '/api/v3', '/api/v3/'].includes(pathname))
    throw new WrongUsage(`A GitHub has its API at ${origin}/api/v3, or at a host that begins with "api.".`);
  try {
    return siteOf(web);
  } catch (error) {
    throw new WrongUsage(error instanceof CommandFailed ? error.message : String(error));
  }
}

/** The region that requests are signed for stands in the address of AWS; other stores take the first one of AWS. */
function signedAt({ hostname }: URL): { type: 'aws_sigv4'; region: string; service: 's3' } {
  const [, region = 'us-east-1'] = /(?:^|\.)s3[.-]([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/.exec(hostname) ?? [];
  return { type: 'aws_sigv4', region, service: 's3' };
}
