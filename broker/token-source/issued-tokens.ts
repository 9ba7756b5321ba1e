/**
 * Tokens issued without a person: of Apps, clients and service accounts. Each is cached per purpose, in memory and sealed in the store,
 * where all replicas find it. One process requests it while others wait, and none is used within five minutes of its expiry.
 */
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { clientBasic } from '../egress/client-basic.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { singleFlight } from '../runtime/single-flight.ts';
import { changeFailing } from '../store/connection-outcomes.ts';
import {
  claimUpstreamToken,
  findUpstreamToken,
  releaseUpstreamToken,
  renewUpstreamToken,
  storeUpstreamToken,
  type TokenPlace,
} from '../store/upstream-tokens.ts';
import type { AccessToken } from './access-token.ts';
import { exchangeAsApp } from './app-exchange.ts';
import type { Exchanged } from './exchanged.ts';
import { isLasting, readFailing, withFailure } from './failing-tokens.ts';
import { leased } from './leased.ts';
import { openToken, sealToken } from './sealed-token.ts';
import { partOf } from './secret-part.ts';
import { exchangeAsAccount } from './service-account.ts';
import { askTokenEndpoint } from './token-endpoint.ts';
import { type ClientTokenRequest, purposeOfRequest, type TokenRequest } from './token-request.ts';

export type IssuedToken = { kind: 'token'; token: AccessToken } | Exclude<Exchanged, { kind: 'token' }>;

/** Returns a token for this request. `refused`: the token that the platform no longer accepts. */
export type IssuedTokens = (request: TokenRequest, refused?: AccessToken | undefined) => Promise<IssuedToken>;

/** For all organisations; each entry takes some 3 KiB. */
const CACHE_SIZE = 2_000;
/** How long a failure is cached before the platform is asked again. */
const FAILURE_CACHE_MS = 2_000;

type Base = Pick<Broker, 'store' | 'vault' | 'clock' | 'log' | 'outbound' | 'instanceId'>;
type Work = { request: TokenRequest; place: TokenPlace; refused: AccessToken | undefined };

/** Creates the function, with its caches. */
export function issuedTokens(broker: Base): IssuedTokens {
  const kept = recentlyUsed<AccessToken>(CACHE_SIZE);
  const failed = recentlyUsed<{ failure: IssuedToken; until: number }>(CACHE_SIZE);
  const running = singleFlight<IssuedToken>();
  return async (request, refused) => {
    const { organisationId, connectionId } = request;
    const place = { organisationId, connectionId, purpose: purposeOfRequest(request) };
    const key = `${organisationId}/${connectionId}/${place.purpose}`;
    const now = broker.clock();
    const found = kept.get(key);
    if (found && found.id !== refused?.id && isGood(found, now)) return { kind: 'token', token: found };
    const failure = failed.get(key);
    if (failure && failure.until > now && failure.until <= now + FAILURE_CACHE_MS) return failure.failure;
    // Requests after a refusal share no attempt with others, which may find this very token in the cache.
    return await running(`${key}/${refused?.id ?? ''}`, async () => {
      const got = await getOnce(broker, { request, place, refused });
      if (got.kind === 'token') kept.set(key, got.token);
      else failed.set(key, { failure: got, until: broker.clock() + FAILURE_CACHE_MS });
      return got;
    });
  };
}

const isGood = ({ refreshAt }: Pick<AccessToken, 'refreshAt'>, now: number): boolean =>
  refreshAt !== null && refreshAt > now;

async function getOnce(broker: Base, work: Work): Promise<IssuedToken> {
  const { clock, store, log } = broker;
  const { place, refused, request } = work;
  /** Id of the token to replace, although its times say that it is valid. */
  let replacedId = refused?.id;
  return await leased<true, IssuedToken>(broker, {
    look: async () => {
      const row = await findUpstreamToken(store.db, place);
      const token = row && openToken(broker, row);
      if (token && token.id !== refused?.id && isGood(token, clock()))
        return { kind: 'done', result: { kind: 'token', token } };
      if (row && !token) replacedId = row.id;
      return { kind: (row?.claim_until ?? 0) > clock() ? 'claimed' : 'open' };
    },
    claim: async (lease) =>
      (await claimUpstreamToken(store.db, place, { ...lease, id: uuidv4(), refused: replacedId })) || undefined,
    // Two tokens are as good as one, so a short lease is enough and no call waits long.
    renew: (lease) => renewUpstreamToken(store.db, place, lease),
    attempt: async (_claimed, name) => {
      const got = await mint(broker, work, name);
      if (got.kind !== 'token') {
        await releaseUpstreamToken(store.db, place, name);
        // Otherwise the connection gets tokens, and only this call exceeds what they allow.
        if (got.kind === 'unavailable' || got.of === 'connection')
          await changeFailing(store.db, place, (text) => {
            const failing = withFailure(readFailing(text), got.detail, clock());
            return { failing: JSON.stringify(failing), attention: isLasting(failing) ? 1 : 0 };
          });
      }
      if (got.kind === 'refused')
        log.warn({ connection: place.connectionId, platform: request.platformId }, got.detail);
      return got;
    },
    givenUp: () => ({
      kind: 'unavailable',
      code: 'token_unavailable',
      detail: `${request.platformId} issued no token in time. Try again shortly.`,
    }),
  });
}

function exchange(broker: Base, request: TokenRequest): Promise<Exchanged> {
  switch (request.kind) {
    case 'app':
      return exchangeAsApp(broker, request);
    case 'client':
      return exchangeAsClient(broker, request);
    case 'account':
      return exchangeAsAccount(broker, request);
  }
}

async function mint(broker: Base, { request, place }: Work, claim: string): Promise<IssuedToken> {
  const got = await exchange(broker, request);
  if (got.kind !== 'token') return got;
  const now = broker.clock();
  const { token, life } = got;
  const made: AccessToken = {
    token,
    id: uuidv4(),
    issuedAt: now,
    ...life,
    refreshable: true,
    lapsed: false,
  };
  const stored = {
    id: made.id,
    token: sealToken(broker, request.organisationId, made),
    refresh_at: life.refreshAt,
    expires_at: life.expiresAt,
  };
  try {
    await storeUpstreamToken(broker.store.db, place, claim, stored);
    await changeFailing(broker.store.db, place, () => ({ failing: null, attention: 0 }));
  } catch (error) {
    // The token works without being stored; other replicas request their own after the claim has expired.
    broker.log.warn({ err: error, connection: place.connectionId }, 'an access token could not be stored');
  }
  return { kind: 'token', token: made };
}

/** Requests a token with the client credentials grant (RFC 6749 §4.4). */
async function exchangeAsClient(
  broker: Pick<Broker, 'outbound' | 'clock'>,
  { platformId, connectionId, auth, parts }: ClientTokenRequest,
): Promise<Exchanged> {
  const { token_endpoint: tokenEndpoint, token_endpoint_auth_method: method, scopes = [], parameters } = auth;
  const id = partOf(parts, 'client_id');
  const secret = partOf(parts, 'client_secret');
  const form = {
    ...parameters,
    grant_type: 'client_credentials',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
  const asked = { platformId, connectionId, tokenEndpoint };
  if (method === 'client_secret_post')
    return await askTokenEndpoint(broker, { ...asked, form: { ...form, client_id: id, client_secret: secret } });
  return await askTokenEndpoint(broker, { ...asked, headers: { authorization: clientBasic(id, secret) }, form });
}
