/**
 * Tokens of an App's installations. Each is kept for what it may be used for: in memory, and sealed in the store, where all replicas
 * find it. One process gets it, whoever else needs it waits, and none is used within five minutes of its end.
 */
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { singleFlight } from '../runtime/single-flight.ts';
import {
  claimUpstreamToken,
  findUpstreamToken,
  releaseUpstreamToken,
  storeUpstreamToken,
  type TokenPlace,
} from '../store/upstream-tokens.ts';
import { type AccessToken, MARGIN_MS } from './access-token.ts';
import { type Exchanged, exchange } from './app-exchange.ts';
import { type AppLimits, type Installation, purposeOf } from './app-installation.ts';
import { appKeyOf } from './app-request.ts';
import { leased } from './leased.ts';
import { openToken, sealToken } from './sealed-token.ts';

export type AppToken = { kind: 'token'; token: AccessToken } | Exclude<Exchanged, { kind: 'token' }>;

/** Gives a token with just these limits. `refused`: the platform took this one no longer. */
export type AppTokens = (
  installation: Installation,
  limits: AppLimits,
  refused?: AccessToken | undefined,
) => Promise<AppToken>;

/** Of all organisations; each is some 3 KiB. */
const KEPT = 2_000;
/** After a failure the platform is left alone for so long. */
const PAUSE_MS = 2_000;

type Base = Pick<Broker, 'store' | 'vault' | 'clock' | 'log' | 'outbound'>;
type Work = { installation: Installation; limits: AppLimits; place: TokenPlace; refused: AccessToken | undefined };

/** Makes it, with what it keeps in memory. */
export function appTokens(broker: Base): AppTokens {
  const kept = recentlyUsed<AccessToken>(KEPT);
  const failed = recentlyUsed<{ failure: AppToken; until: number }>(KEPT);
  const running = singleFlight<AppToken>();
  return async (installation, limits, refused) => {
    const { organisationId, connectionId } = installation;
    const place = { organisationId, connectionId, purpose: purposeOf(installation, limits) };
    const key = `${organisationId}/${connectionId}/${place.purpose}`;
    const now = broker.clock();
    const found = kept.get(key);
    if (found && found.id !== refused?.id && isGood(found, now)) return { kind: 'token', token: found };
    const failure = failed.get(key);
    if (failure && failure.until > now && failure.until <= now + PAUSE_MS) return failure.failure;
    // Who was refused a token shares no attempt with who was not: what that one finds may be this very token.
    return await running(`${key}/${refused?.id ?? ''}`, async () => {
      const got = await getOnce(broker, { installation, limits, place, refused });
      if (got.kind === 'token') kept.set(key, got.token);
      else failed.set(key, { failure: got, until: broker.clock() + PAUSE_MS });
      return got;
    });
  };
}

const isGood = ({ refreshAt }: Pick<AccessToken, 'refreshAt'>, now: number): boolean =>
  refreshAt !== null && refreshAt > now;

async function getOnce(broker: Base, work: Work): Promise<AppToken> {
  const { clock, store, log } = broker;
  const { place, refused, installation } = work;
  /** The token that is to be replaced, although it seems good by its times. */
  let spoiled = refused?.id;
  return await leased<true, AppToken>(clock, {
    look: async () => {
      const row = await findUpstreamToken(store.db, place);
      const token = row && openToken(broker, row);
      if (token && token.id !== refused?.id && isGood(token, clock()))
        return { kind: 'done', result: { kind: 'token', token } };
      if (row && !token) spoiled = row.id;
      return { kind: (row?.claim_until ?? 0) > clock() ? 'claimed' : 'open' };
    },
    claim: async (lease) =>
      (await claimUpstreamToken(store.db, place, { ...lease, id: uuidv4(), refused: spoiled })) || undefined,
    attempt: async (_claimed, name) => {
      const got = await mint(broker, work, name);
      if (got.kind !== 'token') await releaseUpstreamToken(store.db, place, name);
      if (got.kind === 'refused')
        log.warn({ connection: place.connectionId, platform: installation.platformId }, got.detail);
      return got;
    },
    givenUp: () => ({
      kind: 'unavailable',
      code: 'token_unavailable',
      detail: `${installation.platformId} issued no token in time. Try again shortly.`,
    }),
  });
}

async function mint(broker: Base, { installation, limits, place }: Work, claim: string): Promise<AppToken> {
  const { organisationId } = installation;
  const signer = await appKeyOf(broker, installation);
  if (!signer.ok) return { kind: 'refused', of: 'connection', detail: signer.detail };
  const got = await exchange(broker, installation, signer.key, limits);
  if (got.kind !== 'token') return got;
  const now = broker.clock();
  const { token, expiresAt } = got;
  const made: AccessToken = {
    token,
    id: uuidv4(),
    issuedAt: now,
    refreshAt: expiresAt - MARGIN_MS,
    expiresAt,
    refreshable: true,
    lapsed: false,
  };
  const stored = {
    id: made.id,
    token: sealToken(broker, organisationId, made),
    refresh_at: made.refreshAt,
    expires_at: expiresAt,
  };
  try {
    await storeUpstreamToken(broker.store.db, place, claim, stored);
  } catch (error) {
    // It is good without being stored: others get one of their own when the claim has ended.
    broker.log.warn({ err: error, connection: place.connectionId }, 'an access token could not be stored');
  }
  return { kind: 'token', token: made };
}
