/** A held call as owners read it, wherever they read it. */
import { z } from 'zod';
import { personOnRecord } from '../approvals/held-person.ts';
import { statusAt } from '../audit/approval-state.ts';
import type { Broker } from '../broker.ts';
import type { HeldCall } from '../store/held-calls.ts';
import type { ApprovalTable } from '../store/schema.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import { Refusal } from './errors.ts';
import { instant } from './instant.ts';

/** How long the answer to an approval waits for the call, which goes on without it. */
export const REPLAY_WAIT_MS = 15_000;

export const noLongerPending = () =>
  new Refusal('approval_expired', 'This call is no longer pending: it expired, or its agent was revoked or expired.');

/** Where a person decides on it. The id is a capability: whoever has the link sees the request while it waits. */
export const approveUrl = ({ baseUrl }: Pick<Broker, 'baseUrl'>, id: string): string => `${baseUrl}/approve/${id}`;

/** Whole seconds until nobody can decide any more; null when that is so already. */
export const secondsLeft = (one: Pick<ApprovalTable, 'status' | 'expires_at'>, now: number): number | null =>
  statusAt(one, now) === 'pending' ? Math.ceil((one.expires_at - now) / 1000) : null;

/** What is read of the decision of an audit row. */
const Decided = z.object({ matched: z.array(StoredObject).exactOptional() });

/** Why it was held: the reason, the words to it, and the rules that matched. */
export const heldBecause = (held: HeldCall) => ({
  reason: held.held_reason,
  detail: held.held_detail,
  rules: held.held_decision === null ? [] : (readStored(Decided, held.held_decision, 'decision').matched ?? []),
});

/** What became of it so far. `now`: milliseconds. */
export const stated = (one: Omit<ApprovalTable, 'action' | 'result'>, now: number) => ({
  approval_id: one.id,
  status: statusAt(one, now),
  created_at: instant(one.created_at),
  expires_at: instant(one.expires_at),
  expires_in_seconds: secondsLeft(one, now),
  decided_at: instant(one.decided_at),
  decided_by: one.decided_by,
  how: one.decided_how,
  note: one.note,
  executed_at: instant(one.executed_at),
  execution_error: one.execution_error,
  result_summary: one.result_summary,
  audit_ids: { held: one.audit_id, decided: one.decision_audit_id, replayed: one.replay_audit_id },
});

/** Whose child asks, since its name is its parent's invention; null: nobody's. */
export const parentNamed = ({ parent_public_id, parent_name }: HeldCall) =>
  parent_public_id === null ? null : { agent_id: parent_public_id, name: parent_name ?? '' };

/** What can be told to an owner without opening the request. `reason` is the agent's own words. */
export const summary = (broker: Pick<Broker, 'baseUrl' | 'clock'>, held: HeldCall) => ({
  ...stated(held, broker.clock()),
  approve_url: approveUrl(broker, held.id),
  agent: {
    id: held.agent_id,
    agent_id: held.agent_public_id,
    name: held.agent_name,
    status: held.agent_status,
    parent: parentNamed(held),
  },
  platform: held.platform_id,
  connection: held.connection_id && { connection_id: held.connection_id, label: held.connection_label },
  method: held.method,
  path: held.path,
  scope: held.scope,
  reason: held.agent_reason,
  caller: personOnRecord(held),
  decided_by_email: held.decided_by_email,
  held_because: heldBecause(held),
  request_hash: held.request_hash,
});
