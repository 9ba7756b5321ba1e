/** Handles authorization servers that reject the broker's client, or have deleted it. */
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { releaseRefresh, setAttention, type TokenRowPlace } from '../store/oauth-tokens.ts';
import { type OAuthConnectionFacts, writeFacts } from './facts.ts';
import type { OAuthProblem } from './problem.ts';
import type { Registered } from './registered.ts';

type Rejected = { kind: 'unavailable'; code: 'client_rejected'; detail: string };

/** Pause after a failure, in milliseconds. */
export const PAUSE_MS = 2_000;
/** Upper bound of the back-off while a server rejects the broker's client. */
const MAX_PAUSE_MS = 5 * 60_000;
/** A server that rejects a client which the broker registered there for this long is taken to have deleted it. */
const DELETED_AFTER_MS = 10 * 60_000;

/** Marks the connection and backs off exponentially. The refresh token is kept: it stays valid until the client is corrected. */
export async function noteRejection(
  { store, clock, log }: Pick<Broker, 'store' | 'clock' | 'log'>,
  at: { place: TokenRowPlace; name: string; facts: OAuthConnectionFacts; client: Registered },
  error: string,
): Promise<Rejected> {
  const { place, name, facts, client } = at;
  const now = clock();
  const times = (facts.rejected?.times ?? 0) + 1;
  const pauseMs = Math.min(PAUSE_MS * 2 ** Math.min(times - 1, 16), MAX_PAUSE_MS);
  const rejected = { error, since: facts.rejected?.since ?? now, times };
  if (times === 1)
    log.error(
      { connection: place.id, platform: client.platformId, problem: error },
      "authorization server rejects the broker's client",
    );
  const { failing: _answered, ...known } = facts;
  const oauth = writeFacts({ ...known, rejected });
  await setAttention(store.db, place, 1);
  await releaseRefresh(store.db, place, name, { until: now + pauseMs, oauth });
  return rejectedAnswer(client, error);
}

/** Whether a server has deleted a client that the broker registered there: it has rejected the client for longer than an outage lasts. */
export const hasForgotten = (
  { isOwnRegistration }: Registered,
  { rejected }: OAuthConnectionFacts,
  { error }: OAuthProblem,
  now: Instant,
): boolean =>
  isOwnRegistration && error === 'invalid_client' && rejected !== undefined && now - rejected.since >= DELETED_AFTER_MS;

export const rejectedAnswer = ({ platformId, isOwnRegistration }: Registered, error: string): Rejected => ({
  kind: 'unavailable',
  code: 'client_rejected',
  detail:
    isOwnRegistration && error === 'invalid_client'
      ? `The authorization server of ${platformId} does not know the client that the broker registered there (${error}). Try again in ten minutes: if the error remains, the broker registers a new client and asks for a new consent.`
      : `The authorization server of ${platformId} rejects the broker's client (${error}). An operator has to correct its client_id, client_secret or scopes; until then retrying does not help.`,
});
