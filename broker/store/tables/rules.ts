/** Tables of what agents may do: grants, policies, guardrails, and what is asked for. */
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
  /** Empty when none was named. */
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

/** What an agent used of the limit of a rule in a period. */
export type LimitCountTable = {
  organisation_id: string;
  /** Where the rule stands, its name, and what is counted: `guardrail <name> day`, `policy <uuid> <name> day <hash of the expression>`. */
  rule: string;
  /** Of the agent, or of its parent; empty: of all agents together. */
  agent_id: string;
  period_start: number;
  used: number;
};

/** The newest call of a kind that an agent made, for rules that look back at it. */
export type CallMarkTable = {
  organisation_id: string;
  /** Of the agent, or of its parent. */
  agent_id: string;
  /** A hash of which calls the rules look back at. */
  kind: string;
  made_at: number;
  /** Of its audit row. */
  audit_id: string;
};
