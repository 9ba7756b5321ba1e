/** AuthZEN adapter: translates to the decision of a governed call and back, without an engine of its own. */

import type { AgentPrincipal, OwnerPrincipal } from '../auth/principal.ts';
import type { Uses } from '../broker.ts';
import type { FactsLoader } from '../facts/facts.ts';
import { askedPlatform } from '../policy/asked-platform.ts';
import type { Instant, Verdict } from '../policy/facts.ts';
import { findAgent } from '../store/agents.ts';
import { ANY_ADDRESS } from '../store/facts-breakers.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { Evaluation } from './authzen-request.ts';
import { askStanding } from './standing.ts';

export type Asker = AgentPrincipal | OwnerPrincipal;

/** The standard's decision, with `reason` and `require_approval` also at the top level (specification, POST /v1/authzen/access). */
export type Decision = {
  decision: boolean;
  reason: string;
  require_approval?: true;
  context: { reason: string; require_approval?: true; conditional?: true; error?: { status: number; message: string } };
};

/** Reads the facts of an agent for a platform; undefined when the requester may not ask about it. */
export type SubjectReader = (subjectId: string, platform: string) => Promise<readonly FactsRow[] | undefined>;

/**
 * Returns a reader with access control: an agent may ask about itself, by uuid or agent id, and an owner about every agent of the organisation. Foreign and
 * unknown agents are not distinguished.
 *
 * @param read the platform whose facts were loaded when the agent was authenticated
 */
export function subjectReader(
  { facts, broker }: Uses<'store'> & { facts: FactsReader },
  who: Asker,
  read: string,
): SubjectReader {
  if (who.kind === 'agent')
    return async (subjectId, platform) => {
      if (subjectId !== who.agent.agent_id && subjectId.toLowerCase() !== who.agent.id) return undefined;
      return platform === read ? who.rows : await facts(who.agent.agent_id, platform, who.source);
    };
  return async (subjectId, platform) => {
    const agentId = subjectId.startsWith('agt_')
      ? subjectId
      : (await findAgent(broker.store.db, who.organisationId, subjectId))?.agent_id;
    const rows = agentId === undefined ? [] : await facts(agentId, platform, ANY_ADDRESS);
    return rows[0]?.organisation_id === who.organisationId ? rows : undefined;
  };
}

/** Evaluates one question; undefined when the requester may not ask it. */
export async function evaluate(
  services: { loadFacts: FactsLoader },
  readSubject: SubjectReader,
  { subject, action, resource, context }: Evaluation,
  now: Instant,
): Promise<Decision | undefined> {
  const rows = await readSubject(subject.id, askedPlatform(resource.id));
  if (rows === undefined) return undefined;
  const { connection_id: connectionId } = context ?? {};
  const ask = { platformId: resource.id, scope: action.name, ...(connectionId !== undefined && { connectionId }) };
  const { verdict } = await askStanding(services, rows, ask, now);
  return decisionOf(verdict);
}

function decisionOf({ kind, reason, conditional }: Verdict): Decision {
  const said = { reason: REASONS[reason] ?? reason, ...(kind === 'hold' && { require_approval: true as const }) };
  return {
    decision: kind === 'allow',
    ...said,
    context: { ...said, ...(conditional && { conditional: true as const }) },
  };
}

/** Reasons that differ from those of a refused call (specification, POST /v1/authzen/access). */
const REASONS: Partial<Record<Verdict['reason'], string>> = {
  agent_revoked: 'revoked',
  // For a call, this is a 409 without a reason.
  agent_inactive: 'denied',
};
