/** An agent's own held calls (specification, Approval; Pending actions). */
import { statusAt } from '../audit/approval-state.ts';
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { JsonValue } from '../policy/facts.ts';
import { findApproval, holdsRead, listApprovalsOf } from '../store/approvals.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { openRequest, openResult } from './sealed.ts';

type OwnAgent = Pick<AgentTable, 'organisation_id' | 'id'>;

/** Finds a held call of this agent; undefined when the agent has none with this id. */
export async function findOwnApproval(
  { store }: Pick<Broker, 'store'>,
  { organisation_id, id: agentUuid }: OwnAgent,
  id: string,
): Promise<ApprovalTable | undefined> {
  const found = await findApproval(store.db, organisation_id, id);
  return found?.agent_id === agentUuid ? found : undefined;
}

/** Whether any of these ids is a held call of the agent that is a read. */
export const ownsHeldRead = (
  { store }: Pick<Broker, 'store'>,
  { organisation_id, id: agentUuid }: OwnAgent,
  ids: readonly string[],
): Promise<boolean> => holdsRead(store.db, organisation_id, agentUuid, ids);

/**
 * Returns the JSON text of the platform's answer to a replayed call; undefined when there is none; `unreadable`, and logged, when it was altered in
 * the store.
 */
export function readResult(broker: Pick<Broker, 'vault' | 'log'>, found: ApprovalTable): string | undefined {
  try {
    return openResult(broker, found);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error(
      { err: error, security: true, approval: found.id },
      'the result of an approved call cannot be opened',
    );
    return 'unreadable';
  }
}

/** Returns the call as an owner corrected it; undefined when nobody did, or when it was altered in the store, which is logged. */
export function readCorrected(
  broker: Pick<Broker, 'vault' | 'log'>,
  found: ApprovalTable,
): { endpoint: string; data: JsonValue } | undefined {
  if (found.corrected_at === null) return undefined;
  try {
    const { endpoint, data = null } = openRequest(broker, found);
    return { endpoint: String(endpoint), data };
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, approval: found.id }, 'the request of a held call cannot be opened');
    return undefined;
  }
}

const DAY_MS = 24 * 3600 * 1000;
const MAX_LISTED = 1_000;

type Listed = Awaited<ReturnType<typeof listApprovalsOf>>;

/** Lists pending calls, and those decided or expired within 24 hours; newest first. `status`: the current one. */
export async function listOwnApprovals(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  { organisation_id, id }: OwnAgent,
): Promise<{ pending: Listed; completed: Listed }> {
  const now = clock();
  const window = { since: now - DAY_MS, now, limit: MAX_LISTED };
  const found = (await listApprovalsOf(store.db, organisation_id, id, window)).map((one) => ({
    ...one,
    status: statusAt(one, now),
  }));
  return {
    pending: found.filter(({ status }) => status === 'pending'),
    // The store lists its pending rows first, some of which may have expired already.
    completed: found
      .filter(({ status }) => status !== 'pending')
      .sort((one, other) => other.created_at - one.created_at),
  };
}
