/** Stops calls under way whose agent might not begin them any more: within two seconds, on every replica. */
import type { Uses } from '../broker.ts';
import type { Allowed, CallBudget } from '../egress/call-budget.ts';
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

const EVERY_MS = 1_000;
/** Calls that are younger were decided just now. Most have ended before they are looked at, and cost nothing. */
const YOUNG_MS = 500;

/**
 * Looks at all calls under way once a second. Their facts are kept by version, so that a look costs one small statement an organisation, and
 * nothing while no call is as old as that; what they came with beside a signed token costs one statement for each kind. Notifications are not
 * relied on: they are lost while a connection is. While the store does not answer, calls go on, and none can begin.
 */
export function startAccessWatch(services: Services): { stop(): Promise<void> } {
  const { broker, budget } = services;
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    // An agent's calls are looked at by one question.
    const asked = new Map<string, ReturnType<FactsReader>>();
    const facts: FactsReader = (...of) => {
      const key = of.slice(0, 3).join(' ');
      const rows = asked.get(key) ?? services.facts(...of);
      asked.set(key, rows);
      return rows;
    };
    const leases = budget.underWay(performance.now() - YOUNG_MS);
    const live = liveCredentials(
      broker.store.db,
      leases.flatMap(({ allowed }) => allowed?.lent ?? []),
      broker.clock(),
    );
    const looks = leases.map(async (lease) => {
      const { allowed } = lease;
      if (allowed === undefined) return;
      const why =
        (await whyEnded({ ...services, facts }, allowed, broker.clock())) ??
        (allowed.lent.length > 0 ? credentialEnded(allowed.lent, await live) : undefined);
      if (why) lease.stop(why);
    });
    // Of calls without any nobody awaits it.
    live.catch(() => {});
    const failed = (await Promise.allSettled(looks)).find(({ status }) => status === 'rejected');
    // That the store is away was logged when it went.
    if (failed && !broker.storeOutage.isLasting())
      broker.log.error(
        { err: (failed as PromiseRejectedResult).reason },
        'calls under way could not be looked at; retrying',
      );
  };
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
  }, EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await looking;
    },
  };
}

const GONE: AccessEnded = { reason: 'agent_revoked', detail: 'the agent is deleted' };

/** Why an agent could not begin such a call now; undefined: it could. */
export async function whyEnded(
  { facts, loadFacts }: Pick<Services, 'facts' | 'loadFacts'>,
  { agentId, source, signedWith, ...access }: Omit<Allowed, 'lent'>,
  now: Instant,
): Promise<AccessEnded | undefined> {
  const rows = await facts(agentId, access.platformId, source);
  const [agent] = rows;
  if (agent === undefined) return GONE;
  const ended = accessEnded((await loadFacts(rows, access.platformId, now)).facts, access, now);
  if (ended) return ended;
  return signedWith === undefined || signedWith === agent.key_fingerprint ? undefined : KEY_REPLACED;
}
