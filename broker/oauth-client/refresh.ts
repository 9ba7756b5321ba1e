/**
 * Token refresh: one attempt for a connection, or a person, at a time, across all replicas. The claim (a lease) is durable before the
 * request, and no transaction spans the request. If a process dies in between, it is unknown whether the server has rotated
 * the refresh token: when the process is known to be dead, or the lease expires, the next process tries the old token, once.
 */

import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { singleFlight } from '../runtime/single-flight.ts';
import { pause } from '../runtime/waits.ts';
import {
  claimRefresh,
  findTokens,
  releaseRefresh,
  setAttention,
  storeRefreshed,
  type TokenRow,
  type TokenRowPlace,
} from '../store/oauth-tokens.ts';
import { type AccessToken, lifeOf, writeCredential } from '../token-source/access-token.ts';
import { isLasting, withFailure } from '../token-source/failing-tokens.ts';
import { leased } from '../token-source/leased.ts';
import { hasForgotten, noteRejection, PAUSE_MS, rejectedAnswer } from './client-rejection.ts';
import { isOtherAccount, type OAuthConnectionFacts, readFacts, writeFacts } from './facts.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import type { Registered } from './registered.ts';
import { forgetClient } from './registration.ts';
import type { Issued } from './resolve.ts';
import { credentialPlace, openRefreshToken, refreshPlace } from './sealed-tokens.ts';
import type { Refreshing, Steps, Tokens } from './steps.ts';

export type Refreshed =
  /** The credential as it is stored now: newer tokens, or marked as revoked. */
  | { kind: 'replaced'; credential: Uint8Array }
  /** The row was deleted, or its credential was removed. */
  | { kind: 'gone' }
  /** Temporary; the tokens stay. `client_rejected`: lasts until an operator has corrected the broker's client. */
  | { kind: 'unavailable'; code: 'token_unavailable' | 'client_rejected'; detail: string };

/** `refused`: whether the upstream rejected the access token before it expired. */
export type RefreshAsk = {
  place: TokenRowPlace;
  seen: AccessToken;
  refused: boolean;
  /** Returns the client that the tokens were issued to. */
  registered: (issued: Issued) => Promise<Registered | OAuthProblem>;
};

/** Storing is retried until the lease expires, less this margin. */
const SPARE_MS = 2_000;

export type Refresher = (ask: RefreshAsk) => Promise<Refreshed>;

/** Returns the refresh function. Concurrent refreshes of the same tokens in this process share one attempt. */
export function refresher(broker: Base, steps: Steps): Refresher {
  const running = singleFlight<Refreshed>();
  return (ask) =>
    running(`${ask.place.table}/${ask.place.organisationId}/${ask.place.id}/${ask.seen.id}`, () =>
      refreshOnce(broker, steps, ask),
    );
}

type Base = Pick<Broker, 'store' | 'vault' | 'clock' | 'log' | 'instanceId'>;

async function refreshOnce(broker: Base, steps: Steps, ask: RefreshAsk): Promise<Refreshed> {
  const { db } = broker.store;
  const { place, seen } = ask;
  /** The client, or the problem that the client of the tokens no longer exists. */
  let registered: Registered | OAuthProblem | undefined;
  let ready: Refreshing | OAuthProblem | undefined;
  let rejected: string | undefined;
  return await leased<TokenRow, Refreshed>(broker, {
    look: async () => {
      const connection = await findTokens(db, place);
      if (!connection?.credential) return done({ kind: 'gone' });
      if (connection.token_id !== seen.id || connection.refresh_token === null)
        return done({ kind: 'replaced', credential: connection.credential });
      const facts = factsOf(connection);
      rejected = facts.rejected?.error;
      const known = registered ?? (await ask.registered({ client: facts.client_id, server: facts.server }));
      const isGone = isProblem(known) && known.problem === 'stale';
      if (isProblem(known) && !isGone)
        return done({ kind: 'unavailable', code: 'token_unavailable', detail: known.detail });
      registered = known;
      if ((connection.refresh_claim_until ?? 0) > broker.clock())
        return { kind: connection.refresh_claim === null ? 'paused' : 'claimed' };
      // Before the claim, so that the lease covers only the request and storing its result.
      ready = isProblem(registered) ? registered : await steps.refreshing(registered);
      return { kind: 'open' };
    },
    claim: (lease) => claimAnyhow(broker, { place, tokenId: seen.id }, lease),
    attempt: (claimed, name) =>
      withClaim(broker, ask, {
        registered: present(registered, 'client'),
        ready: present(ready, 'server'),
        steps,
        claimed,
        name,
      }),
    givenUp: () => {
      const client = registered === undefined || isProblem(registered) ? undefined : registered;
      const { platformId = '' } = client ?? {};
      if (client && rejected !== undefined) return rejectedAnswer(client, rejected);
      return {
        kind: 'unavailable',
        code: 'token_unavailable',
        detail: `The authorization server of ${platformId} did not answer. Try again shortly.`,
      };
    },
  });
}

const done = (result: Refreshed) => ({ kind: 'done', result }) as const;

/** Claims the refresh, including from an expired lease. */
async function claimAnyhow(
  { store: { db }, log }: Base,
  { place, tokenId }: { place: TokenRowPlace; tokenId: string },
  lease: { name: string; now: Instant; until: Instant },
): Promise<TokenRow | undefined> {
  const claim = { tokenId, ...lease };
  const claimed = await claimRefresh(db, place, { ...claim, abandoned: false });
  if (claimed) return claimed;
  const taken = await claimRefresh(db, place, { ...claim, abandoned: true });
  if (taken)
    log.warn({ connection: place.id }, 'token refresh lease expired; retrying once with the old refresh token');
  return taken;
}

type Claimed = {
  /** The client, or the problem that it no longer exists. */
  registered: Registered | OAuthProblem;
  /** The client's server, or why the server was not found. */
  ready: Refreshing | OAuthProblem;
  steps: Steps;
  claimed: TokenRow;
  name: string;
};

async function withClaim(
  broker: Base,
  { place, seen, refused }: RefreshAsk,
  { registered, ready, steps, claimed, name }: Claimed,
): Promise<Refreshed> {
  const facts = factsOf(claimed);
  const oldToken = openRefreshToken(broker, place, claimed);
  const client = isProblem(registered) || facts.client_id !== registered.clientId ? undefined : registered;
  const answer: Tokens | OAuthProblem =
    oldToken && client
      ? isProblem(ready)
        ? ready
        : await ready(oldToken, facts.server)
      : { problem: 'stale', detail: 'The tokens were issued to another client.' };
  const isRejected = isProblem(answer) && answer.problem === 'client_rejected';
  const isForgotten = isRejected && client !== undefined && hasForgotten(client, facts, answer, broker.clock());
  // Issued by another server or to another client, or revoked: a person has to connect again.
  const ended = isProblem(answer) && (answer.problem === 'invalid_grant' || answer.problem === 'stale' || isForgotten);
  if (isRejected && client && !isForgotten)
    return await noteRejection(broker, { place, name, facts, client }, present(answer.error, 'error of the server'));
  if (isProblem(answer) && !ended) {
    const now = broker.clock();
    const isNeeded = refused || seen.expiresAt === null || seen.expiresAt <= now;
    const failing = isNeeded ? withFailure(facts.failing, answer.detail, now) : undefined;
    const failed = failing && { oauth: writeFacts({ ...facts, failing }) };
    if (failing && isLasting(failing)) await setAttention(broker.store.db, place, 1);
    await releaseRefresh(broker.store.db, place, name, { until: now + PAUSE_MS, ...failed });
    return { kind: 'unavailable', code: 'token_unavailable', detail: answer.detail };
  }
  const { rejected: _corrected, failing: _ended, ...known } = facts;
  const now = broker.clock();
  const next: AccessToken = isProblem(answer)
    ? { ...seen, id: uuidv4(), refreshable: false, lapsed: true, expiresAt: refused ? now : seen.expiresAt }
    : { token: answer.accessToken, id: uuidv4(), ...lifeOf(answer.life, now), refreshable: true, lapsed: false };
  const { vault } = broker;
  const credential = vault.seal(credentialPlace(place), writeCredential(next));
  const newToken = isProblem(answer) ? undefined : answer.refreshToken;
  const refreshToken = isProblem(answer)
    ? null
    : newToken
      ? vault.seal(refreshPlace(place), newToken.reveal())
      : Buffer.from(present(claimed.refresh_token, 'refresh token'));
  const scopes = isProblem(answer) ? undefined : answer.scopes;
  const stored = await storeSurely(broker, present(claimed.refresh_claim_until, 'end of the claim') - SPARE_MS, () =>
    storeRefreshed(broker.store.db, place, name, {
      credential,
      refreshToken,
      tokenId: next.id,
      oauth: writeFacts({ ...known, refreshed_at: now, expires_at: next.expiresAt }),
      upstreamScopes: scopes === undefined ? null : JSON.stringify(scopes),
      status: isProblem(answer) ? 'reauth_needed' : 'active',
    }),
  );
  if (isProblem(answer))
    broker.log.warn({ connection: place.id }, 'OAuth consent revoked: somebody has to connect again');
  if (isForgotten) await forgetClient(broker, client, facts.client_id);
  if (stored) await setAttention(broker.store.db, place, 0);
  if (stored) return { kind: 'replaced', credential };
  const connection = await findTokens(broker.store.db, place);
  const factsNow = readFacts(connection?.oauth ?? null);
  // A person ended the consent, or consented with another account: the new tokens are orphaned. With the same account, the own commit may have
  // succeeded unnoticed, or a replica that took this process for dead refreshed the tokens: revoking one of them could end all of them.
  if (client && !isProblem(answer) && (factsNow === null || isOtherAccount(facts.account, factsNow.account)))
    await steps.revoke(client, [...(newToken ? [newToken] : []), answer.accessToken], facts.server);
  return connection?.credential ? { kind: 'replaced', credential: connection.credential } : { kind: 'gone' };
}

/** Returns the stored metadata of OAuth tokens. Throws when the row has none. */
const factsOf = ({ oauth }: TokenRow): OAuthConnectionFacts => present(readFacts(oauth), 'facts of the tokens');

const MAX_WAIT_MS = 1_000;

/** Losing a rotated refresh token loses the connection, so storing it is retried while the store is unavailable. */
async function storeSurely(
  broker: Pick<Broker, 'clock' | 'log'>,
  until: Instant,
  work: () => Promise<boolean>,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work();
    } catch (error) {
      const ms = Math.min(150 * attempt, MAX_WAIT_MS);
      if (broker.clock() + ms > until) throw error;
      broker.log.warn({ err: error, attempt }, 'could not store refreshed tokens; retrying');
      await pause(ms);
    }
}
