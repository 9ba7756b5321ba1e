/** The broker's client configuration at a platform's authorization server, from the manifest and the secrets that the manifest references. */
import type { ServerMetadata } from 'openid-client';
import type { Broker } from '../broker.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { platformSecrets } from '../token-source/platform-secret.ts';
import type { OAuthProblem } from './problem.ts';
import { namesServer, type RedirectUri, redirectUriOf } from './redirect-uri.ts';

export type OAuthAuth = Extract<Manifest['auth'], { type: 'oauth2' }>;

/** Properties of the server that metadata documents do not have. */
export type ServerOptions = Pick<
  NonNullable<Manifest['oauth']>,
  'scope_separator' | 'token_endpoint_auth_method' | 'token_type' | 'authorization_parameters' | 'account'
>;

export type Endpoints = {
  authorization_endpoint?: string | undefined;
  token_endpoint?: string | undefined;
  revocation_endpoint?: string | undefined;
};

/** The client configuration for any kind of platform, so that later steps do not read the manifest. */
export type Registered = {
  organisationId: string;
  platformId: string;
  connectionId: string;
  redirectUri: RedirectUri;
  clientId: string;
  clientSecret: Secret | undefined;
  /** Whether the broker registered this client itself (RFC 7591): then no operator can correct it. */
  isOwnRegistration: boolean;
  /** For metadata discovery (RFC 8414); without an issuer only the endpoints are known. */
  issuer: string | undefined;
  /** Endpoints that override those of the metadata. */
  endpoints: Endpoints;
  serverOptions: ServerOptions;
  /** Scopes to request. */
  scopes: readonly string[];
  /** Headers that are always sent to the platform. */
  headers: Readonly<Record<string, string>>;
  /** Resource indicator (RFC 8707), for servers that need one; undefined: not sent. */
  resource: string | undefined;
  /** Whether the platform is an MCP server, whose authorization server must advertise PKCE (MCP, Authorization Code Protection). */
  isMcp: boolean;
  /** Whether `offline_access` is requested where the server offers it, because the manifest does not name scopes. */
  wantsOfflineAccess: boolean;
  /** The address from which to discover the issuer (RFC 9728); undefined: the manifest names the server. */
  discoverAt: string | undefined;
};

/** How the broker becomes a client where the manifest names none; undefined: whatever the server supports. */
export type Registering = OAuthAuth['registration'];

/** The configuration before discovery. Without a client id the broker has to become a client. */
export type Described = Omit<Registered, 'clientId' | 'isOwnRegistration'> & {
  clientId: string | undefined;
  registering: Registering;
};

/** Reads the configuration, and the secrets that the manifest references, from the store. @throws SealError when a stored secret was modified */
export async function describedFor(
  broker: Pick<Broker, 'store' | 'vault' | 'baseUrl'>,
  { organisationId, platformId, connectionId }: { organisationId: string; platformId: string; connectionId: string },
  manifest: Manifest,
): Promise<Described | OAuthProblem> {
  const { auth, oauth, kind } = manifest;
  if (auth.type !== 'oauth2') return { problem: 'unsuitable', detail: `${platformId} does not use OAuth.` };
  const secretOf = await platformSecrets(broker, { organisationId, platformId });
  const clientId = typeof auth.client_id === 'string' ? auth.client_id : secretOf('client_id')?.reveal();
  const clientSecret = auth.client_secret && secretOf('client_secret');
  if ((auth.client_id !== undefined && clientId === undefined) || (auth.client_secret && !clientSecret))
    return {
      problem: 'unsuitable',
      detail: `The client of ${platformId} at its authorization server is not stored yet: apply the governance file on the machine that has its client_id and client_secret.`,
    };
  // Tokens must not go to an address of another server: a manifest that names a server has to name all of its endpoints.
  const isOtherServer = auth.issuer !== undefined || auth.token_endpoint !== undefined;
  const builtin = isOtherServer ? { ...oauth, revocation_endpoint: undefined, account: undefined } : oauth;
  const { authorization_endpoint, token_endpoint, revocation_endpoint, ...serverOptions } = {
    ...builtin,
    ...given(auth),
  };
  const endpoints = auth.issuer ? endpointsOf(auth) : { authorization_endpoint, token_endpoint, revocation_endpoint };
  return {
    organisationId,
    platformId,
    connectionId,
    redirectUri: redirectUriOf({ kind, auth, oauth }, { baseUrl: broker.baseUrl, organisationId, connectionId }),
    clientId,
    clientSecret,
    issuer: auth.issuer,
    endpoints,
    serverOptions,
    scopes: auth.scopes ?? scopesNeeded(manifest),
    headers: manifest.headers ?? {},
    resource: kind === 'mcp' ? manifest.base_url : undefined,
    isMcp: kind === 'mcp',
    wantsOfflineAccess: kind === 'mcp' && auth.scopes === undefined,
    discoverAt: namesServer(manifest) ? undefined : manifest.base_url,
    registering: auth.registration,
  };
}

const endpointsOf = ({ authorization_endpoint, token_endpoint, revocation_endpoint }: OAuthAuth): Endpoints => ({
  authorization_endpoint,
  token_endpoint,
  revocation_endpoint,
});

/** Returns the server's properties in an `auth`. */
function given(auth: OAuthAuth): Endpoints & ServerOptions {
  const {
    type: _type,
    issuer: _issuer,
    client_id: _id,
    client_secret: _secret,
    scopes: _scopes,
    redirect_uri: _uri,
    registration: _registration,
    ...facts
  } = auth;
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** Returns, for each scope, the first of its alternatives in `needs`, which is the one to request. */
function scopesNeeded({ needs = {} }: Manifest): string[] {
  return [...new Set(Object.values(needs).flatMap(([first]) => first ?? []))].sort();
}

const OFFLINE_ACCESS = 'offline_access';

/**
 * Returns the scopes to request (MCP 2026-07-28, Scope Selection): adds `offline_access`, where the server offers it, because the tokens are refreshed.
 * Never `offline_access` alone: a request without scopes gets the server's defaults.
 */
export function requestedScopes(
  { scopes, wantsOfflineAccess }: Registered,
  { scopes_supported: offered = [] }: ServerMetadata,
): readonly string[] {
  const isMissing = scopes.length > 0 && !scopes.includes(OFFLINE_ACCESS) && offered.includes(OFFLINE_ACCESS);
  return wantsOfflineAccess && isMissing ? [...scopes, OFFLINE_ACCESS] : scopes;
}
