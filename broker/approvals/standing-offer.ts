/** Whether calls like a held one may be approved along with it, and in which members they may differ. */

import type { Uses } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { Compiled } from '../facts/compiled.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { type Basis, METHODS } from '../policy/facts.ts';
import { type Offered, offeredMembers } from '../policy/free-members.ts';
import { changedSince } from '../policy/standing-approval.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { HeldCall } from '../store/held-calls.ts';
import { openBasis } from './sealed.ts';

/** The services that are needed to compute an offer. */
export type Offering = Uses<'store' | 'vault' | 'log' | 'clock'> & {
  facts: FactsReader;
  loadFacts: FactsLoader;
  compiled: Compiled;
};

/** `why`: a sentence for the deciding person. */
export type StandingOffer = { possible: true; basis: Basis; members: Offered[] } | { possible: false; why: string };

const not = (why: string): StandingOffer => ({ possible: false, why });

/** @param held a pending call */
export async function standingOffer(services: Offering, held: HeldCall): Promise<StandingOffer> {
  if (held.parent_public_id !== null)
    return not('The agent is a child of another one: its calls are approved one by one.');
  // A correction deletes the basis: the rules that hold the call were evaluated for the agent's own request.
  if (held.corrected_at !== null)
    return not('No standing approval is possible for this call: it was corrected. Approve it by itself.');
  if (held.approvers !== null)
    return not(`${held.approvers} people have to approve each such call, so one approval never counts for others.`);
  const basis = readBasis(services.broker, held);
  if (basis === undefined)
    return not(
      'No standing approval is possible for this call: it is too long, or was held by an earlier version of the broker.',
    );
  const { written, holds, connectionId } = basis;
  const strict = holds.find((hold) => hold.source !== 'grant' && !hold.lasting);
  if (strict?.source === 'policy')
    return not(`The rule "${strict.name}" has a limit: each call beyond it needs an approval of its own.`);
  if (strict?.source === 'guardrail')
    return not(`The guardrail "${strict.name}" asks for every call: it does not say remember: true.`);
  if (written.body.kind === 'unread')
    return not('The body of this call was not read completely, so other calls cannot be compared with it.');
  if (connectionId === null) return not('This call has no connection.');
  const now = services.broker.clock();
  const rows = await services.facts(held.agent_public_id, held.platform_id, '');
  const { facts } = await services.loadFacts(rows, now);
  const changed = changedSince(facts, basis);
  if (changed !== undefined)
    return not(`${changed} changed since this call was held, so it can only be approved by itself.`);
  const method = METHODS.find((one) => one === written.method) ?? 'GET';
  const rules = facts.platform?.rules;
  const members = rules ? offeredMembers(rules, { method, path: written.path }, written) : [];
  return { possible: true, basis, members };
}

function readBasis(broker: Offering['broker'], held: HeldCall): Basis | undefined {
  if (held.basis === null) return undefined;
  try {
    return openBasis(broker, held, held.basis);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, approval: held.id }, 'what decided a held call cannot be opened');
    return undefined;
  }
}
