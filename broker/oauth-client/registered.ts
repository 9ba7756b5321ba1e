/** The broker as a client of a platform's authorization server: what the manifest says, with the secrets that it names. */
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { listPlatformSecrets } from '../store/platform-secrets.ts';
import type { OAuthProblem } from './problem.ts';
import { redirectUriOf } from './redirect-uri.ts';

export type OAuthAuth = Extract<Manifest['auth'], { type: 'oauth2' }>;

/** Facts of the server that no metadata document says. */
export type ServerManners = Pick<
  NonNullable<Manifest['oauth']>,
  'scope_separator' | 'token_endpoint_auth_method' | 'token_type' | 'authorization_parameters' | 'account'
>;

export type Endpoints = {
  authorization_endpoint?: string | undefined;
  token_endpoint?: string | undefined;
  revocation_endpoint?: string | undefined;
};

/** Whatever kind of platform it is for: from here on nobody looks at the manifest again. */
export type Registered = {
  organisationId: string;
  platformId: string;
  connectionId: string;
  /** Where the browser comes back to. */
  redirectUri: string;
  clientId: string;
  clientSecret: Secret | undefined;
  /** Where metadata is found (RFC 8414); without one the endpoints are all that is known. */
  issuer: string | undefined;
  /** These win over what the metadata says. */
  endpoints: Endpoints;
  manners: ServerManners;
  /** What to ask for. */
  scopes: readonly string[];
  /** Headers that the platform always gets. */
  headers: Readonly<Record<string, string>>;
  /** What tokens are asked for (RFC 8707), of servers that have to be told; undefined: nothing is said. */
  resource: string | undefined;
  /** Whether the metadata must say that the server knows PKCE (MCP, Authorization Code Protection). */
  strictPkce: boolean;
  /** Where the platform is asked for the issuer (RFC 9728); undefined: the manifest names the server. */
  discoverAt: string | undefined;
};

/** What a manifest says, before anybody was asked. Without a client id the broker has to register itself. */
export type Described = Omit<Registered, 'clientId'> & { clientId: string | undefined };

/** The secrets of a platform, by the names that they have in its `auth`. */
export const PLATFORM_SECRETS = ['client_id', 'client_secret'] as const;

/** Reads what the manifest names from the store. @throws SealError when a stored secret was altered */
export async function describedFor(
  { store, vault, baseUrl }: Pick<Broker, 'store' | 'vault' | 'baseUrl'>,
  { organisationId, platformId, connectionId }: { organisationId: string; platformId: string; connectionId: string },
  manifest: Manifest,
): Promise<Described | OAuthProblem> {
  const { auth, oauth, kind } = manifest;
  if (auth.type !== 'oauth2')
    return { problem: 'unsuitable', detail: `${platformId} does not take its credential through OAuth.` };
  const stored = await listPlatformSecrets(store.db, organisationId, platformId);
  const secretOf = (name: (typeof PLATFORM_SECRETS)[number]): Secret | undefined => {
    const found = stored.find((one) => one.name === name);
    if (!found) return undefined;
    const place = { table: 'platform_secrets' as const, organisationId, rowId: found.id };
    return new Secret(vault.open(place, found.value).toString('utf8'));
  };
  const clientId = typeof auth.client_id === 'string' ? auth.client_id : secretOf('client_id')?.reveal();
  const clientSecret = auth.client_secret && secretOf('client_secret');
  if ((auth.client_id !== undefined && clientId === undefined) || (auth.client_secret && !clientSecret))
    return {
      problem: 'unsuitable',
      detail: `The client of ${platformId} at its authorization server is not here yet: apply the governance file where its client_id and client_secret are found.`,
    };
  // Tokens go to no address of another server: who names one says of it all that there is to say.
  const namesServer = auth.issuer !== undefined || auth.token_endpoint !== undefined;
  const builtin = namesServer ? { ...oauth, revocation_endpoint: undefined, account: undefined } : oauth;
  const { authorization_endpoint, token_endpoint, revocation_endpoint, ...manners } = { ...builtin, ...given(auth) };
  const endpoints = auth.issuer ? endpointsOf(auth) : { authorization_endpoint, token_endpoint, revocation_endpoint };
  const isKnown = auth.issuer !== undefined || endpoints.token_endpoint !== undefined;
  return {
    organisationId,
    platformId,
    connectionId,
    redirectUri: redirectUriOf(auth, { baseUrl, connectionId, namesServer: kind !== 'mcp' || isKnown }),
    clientId,
    clientSecret,
    issuer: auth.issuer,
    endpoints,
    manners,
    scopes: auth.scopes ?? scopesNeeded(manifest),
    headers: manifest.headers ?? {},
    resource: kind === 'mcp' ? manifest.base_url : undefined,
    strictPkce: kind === 'mcp',
    discoverAt: kind === 'mcp' && !isKnown ? manifest.base_url : undefined,
  };
}

const endpointsOf = ({ authorization_endpoint, token_endpoint, revocation_endpoint }: OAuthAuth): Endpoints => ({
  authorization_endpoint,
  token_endpoint,
  revocation_endpoint,
});

/** What an `auth` says of its server. */
function given(auth: OAuthAuth): Endpoints & ServerManners {
  const {
    type: _type,
    issuer: _issuer,
    client_id: _id,
    client_secret: _secret,
    scopes: _scopes,
    redirect_uri: _uri,
    ...facts
  } = auth;
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** Of what each scope needs the first, which is the one to ask for. */
function scopesNeeded({ needs = {} }: Manifest): string[] {
  return [...new Set(Object.values(needs).flatMap(([first]) => first ?? []))].sort();
}
