/** Tables of held calls, and of passkeys and other data for deciding them. */
import type { SeenValueKind } from '../../policy/call-ask.ts';
import type { Bit } from './column-types.ts';

export type ApprovalTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  audit_id: string;
  status: 'pending' | 'approved' | 'denied' | 'expired';
  platform_id: string;
  scope: string;
  method: string;
  path: string;
  /** SHA-256 of the canonical form of the exact request. */
  request_hash: string;
  /** Everything that the replay needs, sealed. */
  action: Uint8Array;
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  /** The owner's uuid. */
  decided_by: string | null;
  decided_how: 'console' | 'api' | 'passkey' | null;
  /** The owner's note to the agent. */
  note: string | null;
  decision_audit_id: string | null;
  /**
   * State of the replay of an approved call. `claimed`: nothing was sent yet; `intent`: the call may be in flight; `unknown`: the call may have
   * been executed.
   */
  exec_state: 'none' | 'claimed' | 'intent' | 'done' | 'failed' | 'unknown';
  /** The process that makes the replay. */
  lease_owner: string | null;
  /** Fencing token: incremented with each claim, so that writes of an earlier claimant are refused. */
  fence: number;
  executed_at: number | null;
  execution_error: string | null;
  /** JSON text `{status, data}`, sealed. */
  result: Uint8Array | null;
  /** Status, type and size of the result: never content. */
  result_summary: string | null;
  replay_audit_id: string | null;
  /** JSON: the passkey that decided, whether the user was verified, and the counter. */
  decided_with: string | null;
  /** Description of the call in one sentence (approvals/held-sentence.ts), sealed; null: held before this was stored. */
  sentence: Uint8Array | null;
  /** JSON: names of the channels in which the call may be decided by a button; null: none. */
  decide_in: string | null;
  /** How many different people have to approve; null: one. */
  approvers: number | null;
  /** JSON (audit/approval-state.ts): the approvals of this request before the deciding one; null: none. */
  approved_before: string | null;
  /** JSON: the channel in which the call was decided by a button, and the person's identity there; then `decided_how` is `api`. */
  decided_on: string | null;
  /** JSON: the basis of the decision to hold (`Basis` of policy/standing-terms.ts), sealed; null: no standing approval can be created from it. */
  basis: Uint8Array | null;
  /** For a corrected call: the agent's original request, sealed; null: not corrected. */
  asked: Uint8Array | null;
  /** The uuid of the owner who corrected the call last. */
  corrected_by: string | null;
  corrected_at: number | null;
  /** The audit row of the last correction. */
  correction_audit_id: string | null;
};

/** Columns that a new held call leaves to the database. */
export type DefaultedApprovalColumns =
  | 'decided_at'
  | 'decided_by'
  | 'decided_how'
  | 'note'
  | 'decision_audit_id'
  | 'exec_state'
  | 'lease_owner'
  | 'fence'
  | 'executed_at'
  | 'execution_error'
  | 'result'
  | 'result_summary'
  | 'replay_audit_id'
  | 'decided_with'
  | 'decided_on'
  | 'approved_before'
  | 'basis'
  | 'asked'
  | 'corrected_by'
  | 'corrected_at'
  | 'correction_audit_id';

/** A new held call. */
export type NewApproval = Omit<ApprovalTable, DefaultedApprovalColumns | 'decide_in' | 'approvers'> &
  Partial<Pick<ApprovalTable, 'decide_in' | 'approvers' | 'basis'>>;

/** One enrolled authenticator of an owner (specification, Passkey credential). */
export type PasskeyTable = {
  organisation_id: string;
  id: string;
  owner_id: string;
  /** In base64url, unique in the whole store. */
  credential_id: string;
  /** COSE key. */
  public_key: Uint8Array;
  counter: number;
  /** The counter in a restored backup, until the passkey is used again; null: not restored, no counter, or used since. */
  restored_counter: number | null;
  /** JSON: a list of WebAuthn transports. */
  transports: string;
  device_name: string;
  /** The authenticator's model id. */
  aaguid: string;
  /** Whether it is synced between devices; synced passkeys have no counter. */
  synced: Bit;
  /** Whether it can sign its owner in without a credential id (WebAuthn section 4); null: unknown. */
  discoverable: Bit | null;
  /**
   * `disabled`: its counter did not increase, so it may have been cloned. `removed`: disabled, then removed by its owner; the row is kept so that
   * the passkey cannot be enrolled again.
   */
  status: 'active' | 'disabled' | 'removed';
  created_at: number;
  last_used_at: number | null;
};

/** A challenge that was used to enrol a passkey. `challenge_hash`: SHA-256 of its base64url, in hexadecimal. */
export type UsedChallengeTable = { challenge_hash: string; expires_at: number };

/** Allows calls like one that an owner approved, without asking again. Its terms never change. */
export type StandingApprovalTable = {
  organisation_id: string;
  /** Sorts by creation. */
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  platform_id: string;
  connection_id: string;
  grant_id: string;
  scope: string;
  /** The held call that it was created from. */
  approval_id: string;
  /** The only session that it applies to; null: any. */
  session_id: string | null;
  uses: number;
  uses_left: number;
  expires_at: number;
  /** JSON: versions of policy, guardrails and manifest, and the holding rules that it replaces. */
  decided_on: string;
  /** JSON (facts/standing-terms.ts), sealed. */
  terms: Uint8Array;
  /** SHA-256 in hexadecimal. */
  terms_hash: string;
  /** The owner's uuid. */
  decided_by: string;
  decided_how: 'console' | 'api' | 'passkey';
  /** JSON, as in approvals. */
  decided_with: string | null;
  created_at: number;
  ended_at: number | null;
  /** `used`: no uses are left. `agent`: the agent was revoked. `grant`: the grant was removed. */
  ended_because: 'owner' | 'used' | 'agent' | 'grant' | null;
  /** The uuid of the owner who ended it; null: ended otherwise. */
  ended_by: string | null;
};

/** A held raw request: an identical request joins its approval. */
export type HeldJoinTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of everything that makes requests identical. */
  key: string;
  /** SHA-256 of its Idempotency-Key, or the empty string. */
  separate: string;
  approval_id: string;
  /** Until when a request waits for the decision. */
  open_until: number;
  /** When the client was first answered that a call which was, or may have been, made has no result; null: not yet. */
  told_at: number | null;
  created_at: number;
};

/** An action that an agent, or one of its children, has done. */
export type AgentDeedTable = {
  organisation_id: string;
  /** The agent; for a child its parent. */
  agent_id: string;
  /** Hash of the kind and the content of the action, which is not stored itself. */
  hash: string;
  kind: SeenValueKind;
  /** Whether the action was done by a call that changes something. */
  changed: Bit;
  created_at: number;
};
