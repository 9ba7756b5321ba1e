/** Access requests (specification, Access request). A repeated request for the same platform and scope returns the pending one. */

import { type ApprovalChanges, changeAndNotify } from '../audit/changes.ts';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { hashToken, mintToken } from '../crypto/one-time-token.ts';
import type { Instant } from '../policy/facts.ts';
import {
  countOpenRequests,
  expireAccessRequests,
  findOpenRequest,
  findRequestByToken,
  putAccessRequest,
  type RequestedScope,
} from '../store/access-requests.ts';
import { lockPending } from '../store/approvals.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import type { AccessRequestTable } from '../store/tables/rules.ts';

/** Limit for an agent with its children: long lists are approved without being read. */
const MAX_OPEN_REQUESTS = 20;

export type Opened = { kind: 'opened' | 'pending'; request: AccessRequestTable } | { kind: 'too_many'; limit: number };

type About = {
  reasonCode: AccessRequestTable['reason_code'];
  reason: string | null;
  /** Time of the request. */
  now: Instant;
  /** Deadline of the decision. */
  expiresAt: Instant;
  /** The agent, or the parent of a child: children share the limit of their parent. */
  familyRootUuid: string;
};

/** Where the agent polls. */
export const pollUrlOf = ({ token }: Pick<AccessRequestTable, 'token'>): string => `/v1/access-request/status/${token}`;

/**
 * Creates a request, or returns the pending one for the same platform and scope. Concurrent callers create only one, and the limit of open requests
 * is never exceeded.
 */
export async function openAccessRequest(
  { store }: Pick<Broker, 'store'>,
  changes: ApprovalChanges,
  asked: RequestedScope,
  about: About,
): Promise<Opened> {
  const { db } = store;
  const { now } = about;
  const pending = await findOpenRequest(db, asked, now);
  if (pending) return { kind: 'pending', request: pending };
  const changed: Pick<AccessRequestTable, 'organisation_id' | 'id'>[] = [];
  const opened = await db.transaction().execute(async (tx): Promise<Opened> => {
    // Serialises requests of this family.
    await lockPending(tx, asked.organisationId, about.familyRootUuid);
    changed.push(...(await expireAccessRequests(tx, now, asked)));
    const found = await findOpenRequest(tx, asked, now);
    const full =
      !found && (await countOpenRequests(tx, { ...asked, agentUuid: about.familyRootUuid }, now)) >= MAX_OPEN_REQUESTS;
    const request = found ?? newRequest(asked, about, now);
    if (!found && !full) {
      await putAccessRequest(tx, request);
      changed.push(request);
    }
    for (const ref of changed) await changes.announce(tx, ref);
    if (full) return { kind: 'too_many', limit: MAX_OPEN_REQUESTS };
    return { kind: found ? 'pending' : 'opened', request };
  });
  for (const { organisation_id, id } of changed) changes.tell({ organisation_id, id });
  return opened;
}

function newRequest(asked: RequestedScope, about: About, now: Instant): AccessRequestTable {
  return {
    organisation_id: asked.organisationId,
    id: uuidv4(),
    // Stored in plain text, unlike other tokens, because a repeated request returns the same one. It grants nothing by itself:
    // polling also requires the agent's authentication.
    token: mintToken('access_request').token.reveal(),
    agent_id: asked.agentUuid,
    platform_id: asked.platformId,
    scope: asked.scope,
    reason_code: about.reasonCode,
    reason: about.reason,
    status: 'pending',
    created_at: now,
    expires_at: about.expiresAt,
    decided_at: null,
    decided_by: null,
    note: null,
    granted: null,
    decision_audit_id: null,
  };
}

/**
 * Finds the request with this token. `another_agents`: it belongs to another agent of the organisation; undefined: the organisation has none with
 * this token.
 */
export async function findRequestOf(
  { store }: Pick<Broker, 'store'>,
  agent: Pick<AgentTable, 'organisation_id' | 'id'>,
  token: string,
): Promise<AccessRequestTable | 'another_agents' | undefined> {
  const isToken = hashToken(token, 'access_request') !== undefined;
  const found = isToken ? await findRequestByToken(store.db, token) : undefined;
  if (found?.organisation_id !== agent.organisation_id) return undefined;
  return found.agent_id === agent.id ? found : 'another_agents';
}

/** Marks requests past their deadline as expired. Readers see them as expired already. */
export const expireRequests = (
  { store }: Pick<Broker, 'store'>,
  changes: ApprovalChanges,
  now: Instant,
): Promise<void> => changeAndNotify(store, changes, (tx) => expireAccessRequests(tx, now));
