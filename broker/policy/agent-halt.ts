/** Describes a halted agent: why, until when, and who can end the halt (specification, AgentHalt). */

export const HALT_CAUSES = [
  'suspended_by_policy',
  'owner_manual',
  'anomaly_auto_suspend',
  'breaker_auth_failure',
  'breaker_api_error',
  'breaker_upstream_failure',
  'unknown',
] as const;
export type HaltCause = (typeof HALT_CAUSES)[number];

/** AgentHalt of the specification. Times are RFC 3339 text already, because this value is sent to clients unchanged. */
export type AgentHalt = {
  state: 'suspended' | 'revoked' | 'breaker_open';
  since: string | null;
  cause: HaltCause;
  detail: string | null;
  recoverable_by: 'owner' | 'time';
  retry_after_seconds: number | null;
  instructions: string;
};
