/** Periodic background jobs: rereading keys, deleting expired data. */
import type { Broker } from '../broker.ts';
import { retireFollowedKeys } from '../keys.ts';
import { MAX_WITHIN_MS } from '../policy/earlier.ts';
import type { Instant } from '../policy/facts.ts';
import { destroyOldSecretKeys } from '../secret-keys.ts';
import { purgeBreakers } from '../store/breakers.ts';
import { purgeCallMarks } from '../store/call-marks.ts';
import { purgeDiagnostics } from '../store/diagnostics.ts';
import { purgeEndedSessions } from '../store/ended-sessions.ts';
import { endFutureTimes } from '../store/future-times.ts';
import { purgeHeldJoins } from '../store/held-joins.ts';
import { purgeIdempotencyKeys } from '../store/idempotency.ts';
import { purgeInvites } from '../store/invites.ts';
import { purgeLimitCounts } from '../store/limit-counts.ts';
import { expireUnusableAuthorisations, purgeMcpAuthorisations } from '../store/mcp-authorisations.ts';
import { purgeMcpRepeats } from '../store/mcp-repeats.ts';
import { purgeDeliveries } from '../store/notice-deliveries.ts';
import { purgeOAuthFlows } from '../store/oauth-flows.ts';
import { purgeIdleClients, purgeOAuthRecords } from '../store/oauth-records.ts';
import { purgeOneTimeTokens } from '../store/one-time-tokens.ts';
import { purgePeople } from '../store/people.ts';
import { purgePersonConsents } from '../store/person-consents.ts';
import { purgePersonSessions } from '../store/person-sessions.ts';
import { purgeRateCounts } from '../store/rate-counts.ts';
import { purgeRefusalCounts } from '../store/refusal-counts.ts';
import { capRegistrationsOfNobody, purgeRegistrations } from '../store/registrations.ts';
import { purgeSecretAuthorizations } from '../store/secret-authorizations.ts';
import { purgeStandingApprovals } from '../store/standing-approvals.ts';
import { purgeStaticKeys } from '../store/static-keys.ts';
import { thinCheckpoints } from '../store/thin-checkpoints.ts';
import { purgeUpstreamTokens } from '../store/upstream-tokens.ts';
import { purgeUsedChallenges } from '../store/used-challenges.ts';

const INTERVAL_MS = 60_000;
const DAY_MS = 24 * 3600 * 1000;
/** By then a consent page (30 minutes), its code (one) and an access token (15), one after the other, have expired. */
const UNUSABLE_AFTER_MS = 3600 * 1000;

/** Limit of registrations at owners that do not exist: anybody can create one, at some 1 KiB a row, kept for two days. */
const MAX_WITHOUT_OWNER = 10_000;

type Jobs = Record<string, (now: Instant) => Promise<void>>;

/**
 * Runs the jobs here, and `more`, every `everyMs` until stopped. While the time is in doubt, runs only jobs that neither expire nor delete
 * anything.
 */
export function startHousekeeping(
  broker: Pick<Broker, 'clock' | 'storeClock' | 'log' | 'metrics' | 'store' | 'storeOutage' | 'keys'>,
  more: Jobs = {},
  everyMs: number = INTERVAL_MS,
): { stop(): Promise<void> } {
  const { store, storeClock, storeOutage, keys, log, metrics } = broker;
  const { db } = store;
  const harmless: Jobs = { 'reading the signing keys again': () => keys.refresh() };
  const chores: Jobs = {
    'retiring signing keys': (now) => retireFollowedKeys(store, keys, now),
    'deleting idempotency keys': (now) => purgeIdempotencyKeys(db, now),
    'ending pauses of a clock that was ahead': (now) => endFutureTimes(db, now),
    'deleting breakers': (now) => purgeBreakers(db, now - DAY_MS),
    // Sessions live for 12 hours. The longer time allows for a machine that started with a clock that was days ahead.
    'deleting sessions that were signed out': (now) => purgeEndedSessions(db, now - 30 * DAY_MS),
    'deleting one-time tokens': (now) => purgeOneTimeTokens(db, now - 30 * DAY_MS),
    // Challenges live for 5 minutes. The longer time as above.
    'deleting used challenges': (now) => purgeUsedChallenges(db, now - 30 * DAY_MS),
    'deleting registrations': (now) => purgeRegistrations(db, now - DAY_MS),
    'limiting registrations without an owner': () => capRegistrationsOfNobody(db, MAX_WITHOUT_OWNER),
    'deleting unfinished OAuth flows': (now) => purgeOAuthFlows(db, now),
    'deleting access tokens that ended': (now) => purgeUpstreamTokens(db, now),
    'deleting consents of people': (now) => purgePersonConsents(db, now - DAY_MS),
    'deleting browser sessions of people': (now) => purgePersonSessions(db, now),
    'deleting people without a token': (now) => purgePeople(db, now - DAY_MS),
    'deleting invites': (now) => purgeInvites(db, now - 30 * DAY_MS),
    'deleting secret authorisations': (now) => purgeSecretAuthorizations(db, now - 30 * DAY_MS),
    'destroying old keys for secrets': (now) => destroyOldSecretKeys(broker, now),
    // Measured by a clock that is only occasionally compared with PostgreSQL's.
    'deleting counts of rate limits': (now) => purgeRateCounts(db, now - 10 * 60_000),
    // No limit has a period longer than a month.
    'deleting counts of limits': (now) => purgeLimitCounts(db, now - 62 * DAY_MS),
    'deleting calls that no look-back condition needs': (now) => purgeCallMarks(db, now - MAX_WITHIN_MS - DAY_MS),
    'deleting refusals': (now) => purgeRefusalCounts(db, now - DAY_MS),
    'deleting OAuth data that is no longer needed': (now) => purgeOAuthRecords(db, now),
    'expiring authorisations that no MCP client can use': (now) =>
      expireUnusableAuthorisations(db, { now, before: now - UNUSABLE_AFTER_MS }),
    'deleting calls of MCP clients': (now) => purgeMcpRepeats(db, now),
    // No organisation allows a call to wait longer.
    'deleting held calls of unmodified clients': (now) => purgeHeldJoins(db, now - 31 * DAY_MS),
    'deleting static keys': (now) => purgeStaticKeys(db, now - 90 * DAY_MS),
    'deleting standing approvals': (now) => purgeStandingApprovals(db, now - 90 * DAY_MS),
    'deleting MCP clients': (now) => purgeIdleClients(db, now),
    'deleting ended authorisations': (now) => purgeMcpAuthorisations(db, now - 90 * DAY_MS),
    'deleting notices that were sent': (now) => purgeDeliveries(db, now - 40 * DAY_MS),
    'thinning checkpoints': (now) => thinCheckpoints(db, now - 7 * DAY_MS),
    'deleting reports': (now) => purgeDiagnostics(db, now - 30 * DAY_MS),
    ...more,
  };
  let running: Promise<void> | undefined;
  const round = async () => {
    const due = storeClock.problem() === undefined ? { ...harmless, ...chores } : harmless;
    for (const [chore, work] of Object.entries(due)) {
      const began = performance.now();
      try {
        await work(broker.clock());
        metrics.chore(chore, performance.now() - began, true);
      } catch (error) {
        metrics.chore(chore, performance.now() - began, false);
        // The next job would fail as well, and the outage was logged when it began.
        if (storeOutage.isLasting()) return;
        // A failing job does not prevent the others.
        log.error({ err: error }, `${chore} failed; retrying in the next round`);
      }
    }
  };
  const timer = setInterval(() => {
    running ??= round().finally(() => {
      running = undefined;
    });
  }, everyMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
