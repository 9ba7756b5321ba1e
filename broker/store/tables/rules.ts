/** Tables of what agents may do: grants, policies, guardrails, access requests, and the counters of rules. */
import type { Bit } from './column-types.ts';

export type GrantTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  platform_id: string;
  connection_id: string | null;
  scopes: string;
  constraints: string;
  require_approval: Bit;
  expires_at: number | null;
  /** The expiry as written in governance.yaml (`30d`), so that applying is idempotent. */
  expires_text: string | null;
  created_at: number;
};

export type PolicyTable = { organisation_id: string; id: string; name: string; version: number; created_at: number };

export type PolicyVersionTable = {
  organisation_id: string;
  policy_id: string;
  version: number;
  rules: string;
  created_at: number;
};

export type GuardrailsVersionTable = { organisation_id: string; version: number; rules: string; created_at: number };

export type AccessRequestTable = {
  organisation_id: string;
  id: string;
  /** For polling by the agent, in addition to its own authentication. */
  token: string;
  agent_id: string;
  platform_id: string;
  /** Empty when the request names no scope. */
  scope: string;
  reason_code: 'not_connected' | 'not_granted' | 'grant_expired' | 'needs_consent' | 'scope_denied';
  /** The agent's stated reason. */
  reason: string | null;
  status: 'pending' | 'approved' | 'denied' | 'expired';
  created_at: number;
  expires_at: number;
  decided_at: number | null;
  decided_by: string | null;
  /** The owner's note to the agent. */
  note: string | null;
  /** JSON: the scopes that the approval granted. */
  granted: string | null;
  decision_audit_id: string | null;
};

/** The used amount of a rule's limit, per agent and period. */
export type LimitCountTable = {
  organisation_id: string;
  /** Where the rule is defined, its name, and what is counted: `guardrail <name> day`, `policy <uuid> <name> day <hash of the expression>`. */
  rule: string;
  /** The agent, or its parent; empty: all agents together. */
  agent_id: string;
  period_start: number;
  used: number;
};

/** The newest call of a kind that an agent made, for rules with a look-back condition. */
export type CallMarkTable = {
  organisation_id: string;
  /** The agent, or its parent. */
  agent_id: string;
  /** Hash of the look-back condition that the call matches. */
  kind: string;
  made_at: number;
  /** Id of its audit row. */
  audit_id: string;
};
