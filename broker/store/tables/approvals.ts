/** Tables of held calls and of those who decide. */
import type { DeedKind } from '../../policy/call-ask.ts';
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
   * State of the replay of an approved call. `claimed`: nothing was sent yet; `intent`: it may be in progress; `unknown`: it may
   * have been executed.
   */
  exec_state: 'none' | 'claimed' | 'intent' | 'done' | 'failed' | 'unknown';
  /** The process that replays it. */
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
  /** What it does, in a sentence (approvals/held-sentence.ts), sealed; null: it was held before that was stored. */
  sentence: Uint8Array | null;
  /** JSON: names of the channels in which it may be decided by a button; null: none. */
  decide_in: string | null;
  /** JSON: the channel in which it was decided by a button, and as whom it knows them; then `decided_how` is `api`. */
  decided_on: string | null;
  /** JSON: what decided it (`Basis` of policy/standing-terms.ts), sealed; null: no standing approval can be made from it. */
  basis: Uint8Array | null;
  /** Of one that was corrected: the request as its agent had asked it, sealed; null: it is what the agent asked. */
  asked: Uint8Array | null;
  /** The owner's uuid, of whoever corrected it last. */
  corrected_by: string | null;
  corrected_at: number | null;
  /** Of the last correction. */
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
  | 'basis'
  | 'asked'
  | 'corrected_by'
  | 'corrected_at'
  | 'correction_audit_id';

/** A new held call. */
export type NewApproval = Omit<ApprovalTable, DefaultedApprovalColumns | 'decide_in'> &
  Partial<Pick<ApprovalTable, 'decide_in' | 'basis'>>;

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
  /** As a restored backup had it, until it is used since; null: it was not restored, keeps no counter, or was used. */
  restored_counter: number | null;
  /** JSON: a list of WebAuthn's transports. */
  transports: string;
  device_name: string;
  /** The authenticator's model id. */
  aaguid: string;
  /** Whether it is synced between devices; synced passkeys have no counter. */
  synced: Bit;
  /** Whether it can sign its owner in without being named (WebAuthn section 4); null: not known. */
  discoverable: Bit | null;
  /**
   * `disabled`: its counter did not increase, so it may have been cloned. `removed`: a disabled one that its owner removed; kept so
   * that it cannot be enrolled again.
   */
  status: 'active' | 'disabled' | 'removed';
  created_at: number;
  last_used_at: number | null;
};

/** A passkey challenge that enrolled. `challenge_hash`: SHA-256 of its base64url, in hexadecimal. */
export type UsedChallengeTable = { challenge_hash: string; expires_at: number };

/** Lets calls pass that are like one that an owner approved. Its terms never change. */
export type StandingApprovalTable = {
  organisation_id: string;
  /** In the order in which they were made. */
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  platform_id: string;
  connection_id: string;
  grant_id: string;
  scope: string;
  /** The held call that it was made from. */
  approval_id: string;
  /** The only session that it is for; null: any. */
  session_id: string | null;
  uses: number;
  uses_left: number;
  expires_at: number;
  /** JSON: versions of policy, guardrails and manifest, and the rules that it stands in for. */
  decided_on: string;
  /** JSON (facts/standing-terms.ts), sealed. */
  terms: Uint8Array;
  /** SHA-256 in hexadecimal. */
  terms_hash: string;
  /** The owner's uuid. */
  decided_by: string;
  decided_how: 'console' | 'api' | 'passkey';
  /** JSON: as of the approval. */
  decided_with: string | null;
  created_at: number;
  ended_at: number | null;
  /** `used`: its last use was made. `agent`: the agent was revoked. `grant`: it was taken away. */
  ended_because: 'owner' | 'used' | 'agent' | 'grant' | null;
  /** The owner's uuid, of one that an owner ended. */
  ended_by: string | null;
};

/** A raw request that is held: the same request sent again joins it. */
export type HeldJoinTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of what makes it the same request. */
  key: string;
  /** SHA-256 of its Idempotency-Key, or the empty string. */
  separate: string;
  approval_id: string;
  /** Until when a request waits for the decision. */
  open_until: number;
  /** When its client was first told that there is no answer of a call that was or may have been made; null: not yet. */
  told_at: number | null;
  created_at: number;
};

/** Something that an agent, or a child of it, did. */
export type AgentDeedTable = {
  organisation_id: string;
  /** The agent; of a child its parent. */
  agent_id: string;
  /** Of its kind and of what it is, which is stored nowhere. */
  hash: string;
  kind: DeedKind;
  /** Whether a call that changes something did it. */
  changed: Bit;
  created_at: number;
};
