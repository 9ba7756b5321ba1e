/** A governed call and its possible outcomes (specification, Governed call). */
import type { BrokerError } from './broker-error.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The person for whom the agent acts: verified, or asserted by a source that the platform trusts. */
export type Caller = { assertion: string } | { source: string; id: string };

export type Action = {
  platform: string;
  /** The path on the platform with its query, in canonical form. */
  endpoint: string;
  method: Method;
  scope: string;
  /** Sent as the body; not with GET. A list or a text only where the operation takes one. */
  data?: object | string | undefined;
  /** `data` is a text that stands for bytes. */
  encoding?: 'base64' | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Which connection, when the platform has several. */
  connection_id?: string | undefined;
  /** Why the agent makes the call; shown to the person who decides. */
  reason?: string | undefined;
  caller?: Caller | undefined;
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

/** Why all calls of the agent are refused (specification, AgentHalt). */
export type Halt = {
  state: 'suspended' | 'revoked' | 'breaker_open';
  since: string | null;
  cause: string;
  detail: string | null;
  recoverable_by: 'owner' | 'time';
  retry_after_seconds: number | null;
  instructions: string;
};

/** A limit of a rule that denies. `asked`: the amount of this call; null when it cannot be determined. `left`: what was left before this call. */
export type Limit = {
  rule: string;
  most: number;
  per: 'hour' | 'day' | 'week' | 'month';
  used: number;
  asked: number | null;
  left: number;
  resets_at: string;
};

/** Something has to be set up before the call can be made. */
export type NotReadyCode =
  | 'agent_inactive'
  | 'platform_reauth_needed'
  | 'needs_consent'
  | 'platform_not_connected'
  | 'consent_required';

export type CallOutcome =
  | {
      kind: 'answered';
      /** The platform's status: a 404 of the platform is a successful call. */
      upstreamStatus: number;
      /** The platform's body. Integers beyond 2^53 are strings. */
      data: unknown;
      auditId: string | undefined;
      /** `base64`: the body is binary, and `data` is its bytes in base64. */
      encoding: string | undefined;
      /** Media type of a body that is no JSON. */
      contentType: string | undefined;
      /** The target of a redirect, which was not followed. */
      location: string | undefined;
      /** The host that the platform redirected to, where the broker followed that redirect and this is its response. */
      followed: string | undefined;
      /** Headers of the platform's response, such as `link` and `retry-after`, by name in lower case. */
      headers: Readonly<Record<string, string>>;
      /** Names of headers that were not sent. */
      droppedHeaders: readonly string[];
      /** The stored response for this Idempotency-Key: nothing was sent now. */
      repeated: boolean;
    }
  | {
      kind: 'held';
      approvalId: string;
      /** The page on which a person decides. */
      approvalUrl: string | undefined;
      /** What the call does, in the words shown to the person who decides; undefined from an older broker. */
      sentence: string | undefined;
      expiresAt: string | undefined;
      message: string;
      auditId: string | undefined;
      repeated: boolean;
    }
  | {
      kind: 'denied';
      reason: DenyReason;
      detail: string;
      /** Recipients or repositories that the grant does not allow. */
      violating: readonly string[];
      /** The limit that the call exceeds, where the denying rule has one. */
      limit: Limit | undefined;
      /** Whether an access request may help. */
      requestable: boolean;
      /** No owner could grant the call: the platform or scope does not exist, or the limits of the grant refuse all of the scope. */
      notGrantable: boolean;
      retryAfterSeconds: number | undefined;
      /** For `circuit_breaker_open`: the platform whose calls are refused; undefined when calls to every platform are. */
      platform: string | undefined;
      auditId: string | undefined;
    }
  | { kind: 'halted'; reason: DenyReason; detail: string; halt: Halt; auditId: string | undefined }
  | {
      kind: 'not_ready';
      code: NotReadyCode;
      message: string;
      /** For `consent_required`: `no_caller`, `asserted_not_allowed` or `not_consented`. */
      reason: string | undefined;
      /** Set while an access request is pending: wait for its decision with `accessRequest`. */
      requestToken: string | undefined;
      /** The link where a person connects the platform, or their own account. */
      consentUrl: string | undefined;
      /** For `consent_required` with a `consentUrl`: wait for the person with `consent`. */
      consentToken: string | undefined;
      /** When the link expires. */
      expiresAt: string | undefined;
      auditId: string | undefined;
    }
  | { kind: 'failed'; error: BrokerError };
