/** The tokens of calls: one way to get them, with a person's consent or without a person, and which were refused though just issued. */
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

/** What a connection gives a call: a credential, or which token it needs. */
export type CallCredential = Credential | { request: TokenRequest };

export const isRequest = (credential: CallCredential): credential is { request: TokenRequest } =>
  'request' in credential;

export type TokenServices = Uses<'clock' | 'log' | 'store' | 'vault' | 'outbound'> & {
  credentials: Credentials;
  oauth: OAuthConnections;
  issuedTokens: IssuedTokens;
};

/** `isFinal`: no token of before may be used either. */
export type Renewed =
  | { kind: 'credential'; credential: Credential }
  | { kind: 'none'; forwarded: Extract<Forwarded, { detail: string }>; isFinal: boolean };

/**
 * Gets a token: the first one (`seen` undefined), or one in place of `seen`, because that one is about to end, or because the
 * platform `refused` it.
 */
export type Renew = (seen: AccessToken | undefined, refused: boolean) => Promise<Renewed>;

type At = {
  organisationId: string;
  platformId: string;
  manifest: Manifest;
  connection: Pick<ConnectionFacts, 'id' | 'credential' | 'personTokens'>;
};

/** How the tokens of this connection are got; undefined: its credential is one that stays as it is. */
export function renewerOf(services: TokenServices, at: At, credential: CallCredential): Renew | undefined {
  if (isRequest(credential)) return issuedRenewer(services, credential.request);
  return credential.token === undefined ? undefined : oauthRenewer(services, at);
}

/** Whether a token has to be got before a call. */
export const isDue = (token: AccessToken | undefined, now: number): boolean =>
  token === undefined || (token.refreshable && token.refreshAt !== null && token.refreshAt <= now);

/** As if the platform had been asked with a token that is over, which it would refuse. */
export const REAUTH: Extract<Forwarded, { detail: string }> = {
  kind: 'refused_locally',
  error: 'credential_over',
  detail: 'The consent to this connection is over; somebody has to connect it again.',
};

const GONE: Renewed = { kind: 'none', forwarded: REAUTH, isFinal: true };

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
    if (seen === undefined) return GONE;
    const done = await oauth.refresh(place, manifest, holder, { seen, refused });
    if (done.kind === 'gone') return GONE;
    if (done.kind === 'unavailable') return unavailable(done.code, done.detail);
    const { credential: sealed } = done;
    const credential = credentials.open(organisationId, { ...connection, credential: sealed }, manifest.auth);
    if (credential === undefined || credential === 'unreadable' || !('secret' in credential)) return GONE;
    broker.log.debug({ connection: connection.id }, 'a call goes on with refreshed tokens');
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
 * Tokens that a platform refused though they had just been issued. One refusal says that the platform does not allow this
 * call; only more of them say that the credential is refused.
 */
export type FreshRefusals = {
  /** Notes a refusal. True: the credential is refused, not only this endpoint. */
  note(connectionId: string, endpoint: string, now: Instant): boolean;
  /** The platform took the credential. */
  forget(connectionId: string): void;
};

/** One endpoint that is refused for so long, and nothing else that works meanwhile, counts as the credential being refused. */
const LONG_MS = 60_000;
const KEPT = 1_000;

export function freshRefusals(): FreshRefusals {
  const first = recentlyUsed<{ endpoint: string; at: Instant }>(KEPT);
  return {
    note: (connectionId, endpoint, now) => {
      const found = first.get(connectionId);
      if (found) return found.endpoint !== endpoint || Math.abs(now - found.at) >= LONG_MS;
      first.set(connectionId, { endpoint, at: now });
      return false;
    },
    forget: (connectionId) => {
      if (first.size > 0) first.delete(connectionId);
    },
  };
}
