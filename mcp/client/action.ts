/** The governed call as an agent asks for it, and what can become of it (specification, Governed call). */
import type { BrokerError } from './broker-error.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The person behind a call: verified, or named by a source that the platform trusts. */
export type Caller = { assertion: string } | { source: string; id: string };

export type Action = {
  platform: string;
  /** The path on the platform with its query, in its normal form. */
  endpoint: string;
  method: Method;
  scope: string;
  /** Sent as the body; not with GET. */
  data?: Readonly<Record<string, unknown>>;
  headers?: Readonly<Record<string, string>>;
  /** Which connection, when the platform has several. */
  connection_id?: string;
  /** Why: shown to whoever decides. */
  reason?: string;
  caller?: Caller;
};

/** Reasons of a refusal (specification, ActionDenied). */
export type DenyReason =
  | 'scope_not_granted'
  | 'agent_suspended'
  | 'agent_revoked'
  | 'platform_suspended'
  | 'no_permission_record'
  | 'circuit_breaker_open'
  | 'no_policy_assigned'
  | 'denied_by_guardrail'
  | 'denied_by_policy'
  | 'endpoint_scope_mismatch'
  | 'grant_expired'
  | 'recipient_not_allowed'
  | 'repo_not_allowed';

/** Why the agent as a whole is stopped (specification, AgentHalt). */
export type Halt = {
  state: 'suspended' | 'revoked' | 'breaker_open';
  since: string | null;
  cause: string;
  detail: string | null;
  recoverable_by: 'owner' | 'time';
  retry_after_seconds: number | null;
  instructions: string;
};

/** Somebody has to set something up before the call can be made. */
export type NotReadyCode =
  | 'agent_inactive'
  | 'platform_reauth_needed'
  | 'needs_consent'
  | 'platform_not_connected'
  | 'consent_required';

export type CallOutcome =
  | {
      kind: 'answered';
      /** The platform's own status: a 404 of the platform is an answer. */
      upstreamStatus: number;
      /** The platform's body. An integer beyond 2^53 is text. */
      data: unknown;
      auditId: string | undefined;
      /** `base64`: the body is no text, and `data` is its bytes. */
      encoding: string | undefined;
      /** Where a redirect points; it was not followed. */
      location: string | undefined;
      /** Headers of the platform's answer, such as `link` and `retry-after`, by name in lower case. */
      headers: Readonly<Record<string, string>>;
      /** Names of headers that were not sent. */
      droppedHeaders: readonly string[];
      /** The first answer to this Idempotency-Key again: nothing was sent now. */
      repeated: boolean;
    }
  | {
      kind: 'held';
      approvalId: string;
      /** Where a person decides. */
      approvalUrl: string | undefined;
      expiresAt: string | undefined;
      message: string;
      auditId: string | undefined;
      repeated: boolean;
    }
  | {
      kind: 'denied';
      reason: DenyReason;
      detail: string;
      /** Whom or what the grant does not reach. */
      violating: readonly string[];
      /** Whether an access request can help. */
      requestable: boolean;
      retryAfterSeconds: number | undefined;
      auditId: string | undefined;
    }
  | { kind: 'halted'; reason: DenyReason; detail: string; halt: Halt; auditId: string | undefined }
  | {
      kind: 'not_ready';
      code: NotReadyCode;
      message: string;
      /** Of consent_required: `no_caller`, `asserted_not_allowed`, `not_consented`. */
      reason: string | undefined;
      /** An access request was raised: wait for it with `accessRequest`. */
      requestToken: string | undefined;
      /** Where a person connects the platform, or themselves. */
      consentUrl: string | undefined;
      auditId: string | undefined;
    }
  | { kind: 'failed'; error: BrokerError };
