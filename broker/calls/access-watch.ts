/** Stops calls in flight whose agent lost the access to make them: within two seconds, on every replica. */
import type { Uses } from '../broker.ts';
import type { CallBudget } from '../egress/call-budget.ts';
import type { Allowed } from '../egress/call-lease.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { type AccessEnded, accessEnded, credentialEnded, KEY_REPLACED } from '../policy/access-ended.ts';
import type { Instant } from '../policy/facts.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { liveCredentials } from '../store/live-credentials.ts';

type Services = Uses<'clock' | 'log' | 'store' | 'storeOutage'> & {
  budget: CallBudget;
  facts: FactsReader;
  loadFacts: FactsLoader;
};

const CHECK_INTERVAL_MS = 1_000;
/** Calls younger than this were decided just now and are skipped. Most calls end before they reach this age and cost nothing here. */
const MIN_AGE_MS = 500;

/**
 * Checks all calls in flight once a second. Facts are cached by version, so a check costs one small statement per organisation, and nothing
 * while no call is older than MIN_AGE_MS; credentials other than a signed token cost one statement per kind. Database notifications are not
 * relied on: they are lost while the connection is down. While the store is unavailable, running calls continue and no call can begin.
 */
export function startAccessWatch(services: Services): { stop(): Promise<void> } {
  const { broker, budget } = services;
  let checking: Promise<void> | undefined;
  const check = async (): Promise<void> => {
    // One query per agent, however many calls it has in flight.
    const asked = new Map<string, ReturnType<FactsReader>>();
    const facts: FactsReader = (...of) => {
      const key = of.slice(0, 3).join(' ');
      const rows = asked.get(key) ?? services.facts(...of);
      asked.set(key, rows);
      return rows;
    };
    const leases = budget.underWay(performance.now() - MIN_AGE_MS);
    const live = liveCredentials(
      broker.store.db,
      leases.flatMap(({ allowed }) => allowed?.lent ?? []),
      broker.clock(),
    );
    const checks = leases.map(async (lease) => {
      const { allowed } = lease;
      if (allowed === undefined) return;
      const why =
        (await whyEnded({ ...services, facts }, allowed, broker.clock())) ??
        (allowed.lent.length > 0 ? credentialEnded(allowed.lent, await live) : undefined);
      if (why) lease.stop(why);
    });
    // Nothing awaits `live` when no call uses a lent credential; avoids an unhandled rejection.
    live.catch(() => {});
    const failed = (await Promise.allSettled(checks)).find(({ status }) => status === 'rejected');
    // A store outage was already logged when it began.
    if (failed && !broker.storeOutage.isLasting())
      broker.log.error(
        { err: (failed as PromiseRejectedResult).reason },
        'calls in flight could not be checked; retrying',
      );
  };
  const timer = setInterval(() => {
    checking ??= check().finally(() => {
      checking = undefined;
    });
  }, CHECK_INTERVAL_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await checking;
    },
  };
}

const AGENT_DELETED: AccessEnded = { reason: 'agent_revoked', detail: 'the agent is deleted' };

/** Returns why the agent could not begin such a call now, or undefined when it could. */
export async function whyEnded(
  { facts, loadFacts }: Pick<Services, 'facts' | 'loadFacts'>,
  { agentId, source, signedWith, ...access }: Omit<Allowed, 'lent'>,
  now: Instant,
): Promise<AccessEnded | undefined> {
  const rows = await facts(agentId, access.platformId, source);
  const [agent] = rows;
  if (agent === undefined) return AGENT_DELETED;
  const ended = accessEnded((await loadFacts(rows, now)).facts, access, now);
  if (ended) return ended;
  return signedWith === undefined || signedWith === agent.key_fingerprint ? undefined : KEY_REPLACED;
}
