/** Tables for deduplicating calls, and for counting them. */

/** A counter of a rate limit; its window ends at `until` by the store's clock. */
export type RateCountTable = { key: string; count: number; until: number };

export type IdempotencyTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of the client's key. */
  key_hash: string;
  request_hash: string;
  audit_id: string;
  /** The process that makes the call; null once there is a response, or the process was found dead. */
  instance_id: string | null;
  /** 1: the call is a read, which may be made without a durable intent. */
  is_read: number | null;
  status: number | null;
  answer: Uint8Array | null;
  created_at: number;
  expires_at: number;
};

/** Bytes of the responses stored for an agent and its children that expire in this hour (since 1970). `agent_id`: the parent's. */
export type StoredResponsesTable = { organisation_id: string; agent_id: string; hour: number; bytes: number };

/** A call of an MCP client whose response was not delivered yet. */
export type McpRepeatTable = {
  organisation_id: string;
  agent_id: string;
  /** SHA-256 of the call's content. */
  hash: string;
  /** Its Idempotency-Key. */
  key: string;
  /** The reason of the first attempt. */
  reason: string | null;
  /** Set once the call is held. */
  approval_id: string | null;
  expires_at: number;
};

/** Number of calls by time and by agent or platform, for charts. */
export type ActivityCountTable = {
  organisation_id: string;
  dimension: 'platform_hour' | 'agent_hour' | 'agent_day';
  /** The beginning of the hour or day (UTC), in milliseconds. */
  at: number;
  /** The platform's id, '' when the call named none; or the agent's `agt_` id. */
  name: string;
  /** The result; `failed`: the platform refused it. `made`, `made_failed`: result of the replay of an approved call. */
  outcome: 'allowed' | 'failed' | 'held' | 'denied' | 'blocked' | 'errored' | 'made' | 'made_failed';
  calls: number;
};

/** The last audit row of an organisation that was counted. */
export type ActivityCountedTable = { organisation_id: string; row_id: string };
