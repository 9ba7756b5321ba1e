/** Tokens of calls: how they are obtained, with a person's consent or without a person, and which were refused although just issued. */
import type { Uses } from '../broker.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { AccessToken } from '../token-source/access-token.ts';
import type { IssuedTokens } from '../token-source/issued-tokens.ts';
import type { TokenRequest } from '../token-source/token-request.ts';
import { type Credential, type Credentials, holderOf } from './credentials.ts';
import type { Forwarded } from './forwarded.ts';

/** What a connection provides for a call: a credential, or the token request to make. */
export type CallCredential = Credential | { request: TokenRequest };

export const isRequest = (credential: CallCredential): credential is { request: TokenRequest } =>
  'request' in credential;

export type TokenServices = Uses<'clock' | 'log' | 'store' | 'vault' | 'outbound'> & {
  credentials: Credentials;
  oauth: OAuthConnections;
  issuedTokens: IssuedTokens;
};

/** `isFinal`: the previous token must not be used either. */
export type Renewed =
  | { kind: 'credential'; credential: Credential }
  | { kind: 'none'; forwarded: Extract<Forwarded, { detail: string }>; isFinal: boolean };

/**
 * Gets a token: the first one (`seen` undefined), or a replacement for `seen`, because it is about to expire or the platform `refused` it.
 */
export type Renew = (seen: AccessToken | undefined, refused: boolean) => Promise<Renewed>;

type At = {
  organisationId: string;
  platformId: string;
  manifest: Manifest;
  connection: Pick<ConnectionFacts, 'id' | 'credential' | 'personTokens'>;
};

/** Returns how to renew this connection's tokens; undefined when its credential is not a token. */
export function renewerOf(services: TokenServices, at: At, credential: CallCredential): Renew | undefined {
  if (isRequest(credential)) return issuedRenewer(services, credential.request);
  return credential.token === undefined ? undefined : oauthRenewer(services, at);
}

/** Whether a token must be fetched before a call. */
export const isDue = (token: AccessToken | undefined, now: number): boolean =>
  token === undefined || (token.refreshable && token.refreshAt !== null && token.refreshAt <= now);

/** The result for an expired token, as if the platform had refused it. */
export const REAUTH: Extract<Forwarded, { detail: string }> = {
  kind: 'refused_locally',
  error: 'credential_over',
  detail: 'The consent to this connection has expired or was revoked; somebody has to connect it again.',
};

const CONSENT_GONE: Renewed = { kind: 'none', forwarded: REAUTH, isFinal: true };

const unavailable = (code: string, detail: string): Renewed => ({
  kind: 'none',
  forwarded: { kind: 'unreachable', code, detail, sent: false },
  isFinal: false,
});

function oauthRenewer({ broker, credentials, oauth }: TokenServices, at: At): Renew {
  const { organisationId, platformId, manifest, connection } = at;
  const place = { organisation_id: organisationId, id: connection.id, platform_id: platformId };
  const holder = holderOf(organisationId, connection);
  return async (seen, refused) => {
    if (seen === undefined) return CONSENT_GONE;
    const done = await oauth.refresh(place, manifest, holder, { seen, refused });
    if (done.kind === 'gone') return CONSENT_GONE;
    if (done.kind === 'unavailable') return unavailable(done.code, done.detail);
    const { credential: sealed } = done;
    const credential = credentials.open(organisationId, { ...connection, credential: sealed }, manifest.auth);
    if (credential === undefined || credential === 'unreadable' || !('secret' in credential)) return CONSENT_GONE;
    broker.log.debug({ connection: connection.id }, 'a call continues with refreshed tokens');
    return { kind: 'credential', credential };
  };
}

function issuedRenewer({ credentials, issuedTokens }: TokenServices, request: TokenRequest): Renew {
  return async (seen, refused) => {
    const got = await issuedTokens(request, refused ? seen : undefined);
    if (got.kind === 'token') return { kind: 'credential', credential: credentials.ofToken(got.token) };
    if (got.kind === 'unavailable') return unavailable(got.code, got.detail);
    const error = got.of === 'connection' ? 'no_token' : 'no_token_for_call';
    return { kind: 'none', forwarded: { kind: 'refused_locally', error, detail: got.detail }, isFinal: true };
  };
}

/**
 * Tokens that a platform refused although they were just issued. One refusal means that the platform does not allow this call; only several
 * mean that the credential is refused.
 */
export type FreshRefusals = {
  /** Notes a refusal. Returns true when the credential is refused, not only this endpoint; the caller then stores that. */
  note(connectionId: string, endpoint: string, now: Instant): boolean;
  /** Clears the refusals, because the platform accepted the credential. */
  forget(connectionId: string): void;
};

/** An endpoint that is refused for this long, with no other success meanwhile, counts as a refused credential. */
const REFUSED_FOR_MS = 60_000;
const CACHE_SIZE = 1_000;

export function freshRefusals(): FreshRefusals {
  const first = recentlyUsed<{ endpoint: string; at: Instant }>(CACHE_SIZE);
  return {
    note: (connectionId, endpoint, now) => {
      const found = first.get(connectionId);
      const isRefused = found && (found.endpoint !== endpoint || Math.abs(now - found.at) >= REFUSED_FOR_MS);
      // From here on the stored status says it; what follows a new consent is counted from the beginning.
      if (isRefused) first.delete(connectionId);
      else if (!found) first.set(connectionId, { endpoint, at: now });
      return isRefused === true;
    },
    forget: (connectionId) => {
      if (first.size > 0) first.delete(connectionId);
    },
  };
}
