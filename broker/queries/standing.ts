/** A standing query about a scope, without a call: uses the facts and the decision of a governed call. */

import { refuseUnreviewed } from '../calls/restored-store.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { decide } from '../policy/decide.ts';
import type { Ask, Instant, Policy, Verdict } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import type { FactsRow } from '../store/facts-columns.ts';

export type StandingAsk = Omit<Ask, 'call'>;
export type Standing = { verdict: Verdict; policy: Policy | undefined };

/**
 * Decides a standing query on facts that were loaded for its platform. Nothing is recorded and no agent is suspended, because a query is not a call. Throws
 * StoreUnreviewed, because no call would be made.
 */
export async function askStanding(
  services: { loadFacts: FactsLoader },
  rows: readonly FactsRow[],
  ask: StandingAsk,
  now: Instant,
): Promise<Standing> {
  refuseUnreviewed({ agent: present(rows[0], 'agent') });
  const { facts } = await services.loadFacts(rows, now);
  return { verdict: decide(facts, ask, now), policy: facts.policy };
}
