/** Tables of agents: their keys, what stopped them, and their reports. */

import type { ColumnType } from 'kysely';
import type { AgentStatus, HaltCause } from '../../policy/facts.ts';

export type AgentTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  name: string;
  owner_id: string;
  /** null: the agent has no key of its own; tokens of its workload authenticate it. */
  agent_type: 'key' | 'child' | 'mcp_client' | null;
  status: AgentStatus;
  status_since: number | null;
  status_cause: HaltCause | null;
  status_detail: string | null;
  policy_id: string | null;
  /** How it was created: `apply` removes only agents that a governance file created. */
  origin: 'governance' | 'owner' | 'registration';
  parent_id: string | null;
  public_key_pem: string | null;
  /** RFC 7638 thumbprint of its key; for a child the hash of its token's `jti`. */
  key_fingerprint: string | null;
  created_at: number;
  expires_at: number | null;
  /** Uuids, separated by spaces: the agent's tokens may name one of these instead of the owner. */
  former_owners: string | null;
  /** JSON: a list in alphabetical order; null: none. */
  labels: string | null;
};

/** Number of an agent's children that are not revoked and not recorded as expired. */
export type CountedChildren = { live_children: ColumnType<number, number | undefined, number> };

/** A row exists only while there are recent strikes; `open_until` is null while the breaker is closed. */
export type BreakerTable = {
  organisation_id: string;
  agent_id: string;
  cause: 'breaker_auth_failure' | 'breaker_api_error' | 'breaker_upstream_failure';
  /** Source address, platform id, or empty: the key by which strikes are counted. */
  key: string;
  strikes: number;
  window_start: number;
  opened_at: number | null;
  open_until: number | null;
  /** When the trial call of a half-open breaker was claimed. */
  trial_at: number | null;
};

/** A replaced key of an agent; it cannot be bound again. */
export type FormerKeyTable = { organisation_id: string; fingerprint: string; agent_id: string; replaced_at: number };

/** Refusals of an agent and its children since `window_start`; only with auto-suspension. */
export type RefusalCountTable = { organisation_id: string; agent_id: string; refusals: number; window_start: number };

/** An owner's consent that an MCP client may act as this agent. */
export type McpAuthorisationTable = {
  organisation_id: string;
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  /** Who consented. */
  owner_id: string;
  client_id: string;
  /** The client's self-declared name. */
  client_name: string;
  /** Host of the redirect URI that its code was sent to. */
  redirect_host: string;
  scope: string;
  created_at: number;
  expires_at: number;
  ended_at: number | null;
  /** `reuse`: one of its refresh tokens was used twice, so it may have been stolen. */
  ended_because: 'owner' | 'client' | 'reuse' | null;
};

/** A bearer of an agent for one connection, for clients that cannot sign. */
export type StaticKeyTable = {
  organisation_id: string;
  id: string;
  /** The agent's uuid. */
  agent_id: string;
  connection_id: string;
  /** Name that the owner gave it. */
  label: string;
  /** SHA-256 of the key, in hexadecimal. */
  token_hash: string;
  /** The owner who issued it. */
  owner_id: string;
  created_at: number;
  expires_at: number;
  /** Updated only occasionally. */
  last_used_at: number | null;
  ended_at: number | null;
  /** `agent`: the agent was revoked. `connection`: the connection was removed. */
  ended_because: 'owner' | 'agent' | 'connection' | null;
};

/** Agents' reports of unexpected responses. */
export type DiagnosticTable = {
  organisation_id: string;
  id: string;
  agent_id: string;
  severity: 'info' | 'warning' | 'error';
  message: string;
  code: string | null;
  platform: string | null;
  endpoint: string | null;
  correlation_id: string | null;
  /** JSON text. */
  context: string | null;
  received_at: number;
};

/** Issuer and subject of the tokens that authenticate an agent, besides those that it signs itself. At most one per agent. */
export type WorkloadTable = {
  organisation_id: string;
  agent_id: string;
  /** Replaced on each change. */
  id: string;
  /** `iss` of the tokens. */
  issuer: string;
  /** `sub` of the tokens. */
  subject: string;
  /** URL of the issuer's keys; null: found by discovery. */
  jwks_uri: string | null;
  created_at: number;
  /** Accurate to some minutes; null: never. */
  last_used_at: number | null;
  /** Who set it: a governance file removes only workloads that a file set. */
  origin: 'governance' | 'owner';
};
