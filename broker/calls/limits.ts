/** Limits of rules: what was used before a call, and what the call uses, which is charged with its intent. */
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { countedBy } from '../policy/counted-limits.ts';
import type { Ask, Facts, Instant } from '../policy/facts.ts';
import {
  type Charge,
  type Counted,
  exceedsLimit,
  type Period,
  periodAt,
  type ReportedLimit,
  reportedLimit,
} from '../policy/limit.ts';
import { familyIn } from '../policy/look-back.ts';
import { addToLimit, findLimitCounts, type LimitPlace } from '../store/limit-counts.ts';
import type { Db } from '../store/store.ts';
import { type RolledBack, rollback } from '../store/transaction.ts';

/** Returns the ask with what it would charge to the limits of these facts' rules. */
export async function withCharges<A extends Ask>(
  { store }: Pick<Broker, 'store'>,
  facts: Facts,
  ask: A,
  now: Instant,
): Promise<A> {
  const { call } = ask;
  if (call === undefined) return ask;
  const counted = countedBy(facts, ask, now);
  const used = await findLimitCounts(
    store.db,
    counted.map((one) => placeOf(facts, one, now)),
  );
  const charges = counted.map((one, i): Charge => ({ ...one, used: used[i] ?? 0 }));
  return { ...ask, call: { ...call, charges } };
}

/** Whether a call charges the same amounts to the same limits under these facts as it already did. */
export function usesTheSame(facts: Facts, ask: Ask, now: Instant): boolean {
  const said = (counted: readonly Counted[]) =>
    JSON.stringify(counted.map((one) => [placeOf(facts, one, now), one.amount, one.limit.most]));
  return said(countedBy(facts, ask, now)) === said(ask.call?.charges ?? []);
}

const placeOf = (facts: Facts, { source, rule, limit }: Counted, now: Instant): LimitPlace =>
  limitPlace(
    { organisationId: facts.agent.organisationId, agentId: familyIn(facts), policyId: facts.policy?.id },
    { source, rule, limit: { ...limit, of: limit.of?.source } },
    now,
  );

/** A rule with a limit, as it identifies a counter. */
type Named = Pick<Counted, 'source' | 'rule'> & {
  limit: { per: Period; of?: string | undefined; together?: boolean | undefined };
};

/**
 * The counter of a rule. `agentId`: uuid of the parent for a child, whose usage counts as its parent's. A policy's rule counts per agent
 * under that policy, a guardrail's per agent of the organisation, unless `together`; another period or amount is another counter.
 */
export function limitPlace(
  { organisationId, agentId, policyId }: { organisationId: string; agentId: string; policyId: string | undefined },
  { source, rule, limit: { per, of, together } }: Named,
  now: Instant,
): LimitPlace {
  const measure = of === undefined ? per : `${per} ${sha256Hex(of).slice(0, 16)}`;
  return {
    organisation_id: organisationId,
    rule: `${source === 'guardrail' ? 'guardrail' : `policy ${policyId}`} ${rule} ${measure}`,
    agent_id: together ? '' : agentId,
    period_start: periodAt(per, now).start,
  };
}

/** A fixed order, so that transactions do not deadlock. */
const byRule = (a: Charge, b: Charge): number => (a.rule < b.rule ? -1 : 1);

/**
 * Charges what the call uses, in the transaction of its intent. A call that a person approved is made even over a limit, and still counts.
 * Rolls back with `limit_reached` when concurrent calls used up the rest.
 */
export async function chargeLimits(
  tx: Db,
  facts: Facts,
  ask: Ask,
  now: Instant,
): Promise<ReportedLimit[] | RolledBack<'limit_reached'>> {
  const reported: ReportedLimit[] = [];
  for (const charge of (ask.call?.charges ?? []).toSorted(byRule)) {
    const { amount, limit } = charge;
    if (amount === undefined) continue;
    const most = exceedsLimit(charge) ? undefined : limit.most;
    const used = amount === 0 ? charge.used : await addToLimit(tx, placeOf(facts, charge, now), amount, most);
    if (used === undefined) return rollback('limit_reached');
    reported.push(reportedLimit({ ...charge, used }, now));
  }
  return reported;
}
