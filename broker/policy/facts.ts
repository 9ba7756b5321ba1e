/**
 * The input of a decision (facts and ask) and its output (verdict): plain data, no behaviour. Every entry point (governed calls, replays, permissions,
 * AuthZEN, TRQP, git) uses the same types.
 */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { type AgentHalt, HALT_CAUSES, type HaltCause } from './agent-halt.ts';
import {
  type CallAsk,
  type GitAsk,
  type GitRef,
  METHODS,
  type Method,
  REF_CHANGES,
  type RefChange,
  readMembers,
  UnreadBody,
} from './call-ask.ts';
import type { Constraints } from './constraints.ts';
import type { ReportedLimit } from './limit.ts';
import type { Mask } from './masks/mask.ts';
import type { PlatformRules } from './platform-rules.ts';
import {
  EFFECTS,
  type Effect,
  type Guardrails,
  type MatchedRule,
  type Policy,
  type Rule,
  type RuleSource,
} from './rules/rule.ts';
import type { Basis, Hold, Repeat, StandingApproval } from './standing-terms.ts';

/** Milliseconds since the Unix epoch. Functions of this folder take the time as an argument. */
export type Instant = number;

export type {
  AgentHalt,
  Basis,
  CallAsk,
  Constraints,
  Effect,
  GitAsk,
  GitRef,
  Guardrails,
  HaltCause,
  JsonObject,
  JsonValue,
  MatchedRule,
  Method,
  Policy,
  RefChange,
  Repeat,
  Rule,
  RuleSource,
  StandingApproval,
};
export { EFFECTS, HALT_CAUSES, METHODS, REF_CHANGES, readMembers, UnreadBody };

/** In place of a platform id when facts are requested: all platforms on which the agent has grants. */
export const ALL_PLATFORMS = '*';

export const AGENT_STATUSES = ['active', 'suspended', 'revoked', 'pending', 'pending_bind', 'deleted'] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** `reauth_needed`: the platform refused the stored credential. `not_connected`: no credential is stored. */
export type GrantedConnection = { label: string; status: 'active' | 'reauth_needed' | 'not_connected' };

export type Grant = {
  id: string;
  platformId: string;
  /** null: the platform's default connection. */
  connectionId: string | null;
  /** The connection that the grant uses; absent when it was not loaded with the grant. */
  connection?: GrantedConnection;
  scopes: readonly string[];
  constraints: Constraints;
  requireApproval: boolean;
  expiresAt: Instant | null;
};

/** The parent of a child identity, with its current grants on the same platform and its current breakers. */
export type ParentFacts = {
  id: string;
  agentId: string;
  name: string;
  ownerId: string;
  status: AgentStatus;
  expiresAt: Instant | null;
  grants: readonly Grant[];
  breakers: readonly BreakerFacts[];
};

export type AgentFacts = {
  id: string;
  agentId: string;
  name: string;
  ownerId: string;
  organisationId: string;
  status: AgentStatus;
  statusSince: Instant | null;
  statusCause: HaltCause | null;
  statusDetail: string | null;
  expiresAt: Instant | null;
  /** For a child, those of its parent. */
  labels?: readonly string[];
  parent?: ParentFacts;
};

/** A breaker that is not closed. `openUntil` in the past means half-open: the next call may take the trial, unless a trial is in flight. */
export type BreakerFacts = {
  cause: 'breaker_auth_failure' | 'breaker_api_error' | 'breaker_upstream_failure';
  /** The only platform to which the breaker refuses calls; absent: it halts the agent. */
  platformId?: string;
  openedAt: Instant;
  openUntil: Instant;
  /** When a trial call in flight times out; null when none is in flight. */
  trialUntil: Instant | null;
};

export type PlatformFacts = {
  platformId: string;
  name: string;
  /** The version of its manifest. */
  version: number;
  /** Whether the organisation suspended the platform. */
  suspended: boolean;
  defaultConnectionId: string | null;
  rules: PlatformRules;
  /** Each person has their own token on the platform; calls do not use the connection's credential. */
  perPerson?: true;
};

export type Facts = {
  agent: AgentFacts;
  /** Undefined: the organisation has no such platform. */
  platform?: PlatformFacts;
  /** The agent's grants on that platform. */
  grants: readonly Grant[];
  /** For a child, that of its parent. */
  policy?: Policy;
  guardrails: Guardrails;
  breakers: readonly BreakerFacts[];
  /** The standing approvals of the agent on that platform that were not ended; some may have expired. Absent: there is none. */
  standing?: readonly StandingApproval[];
};

/** `repeat`: the call as it is sent, for comparing with approved calls; without it no standing approval applies. */
export type Ask = { platformId: string; scope: string; connectionId?: string; call?: CallAsk; repeat?: Repeat };

/** In the order in which they run (specification, TRQP response base). */
export const STANDING_CHECKS = [
  'status',
  'grant',
  'ttl',
  'breaker',
  'child_liveness',
  'guardrails',
  'policy',
  'scope',
] as const;
export const CONCRETE_CHECKS = ['endpoint', 'recipient_constraints', 'reach'] as const;
export type CheckName = (typeof STANDING_CHECKS)[number] | (typeof CONCRETE_CHECKS)[number];

/** `reason` of ActionDenied, and `agent_inactive`, which is answered with a 409. */
export const DENY_REASONS = [
  'scope_not_granted',
  'agent_suspended',
  'agent_revoked',
  'platform_suspended',
  'no_permission_record',
  'circuit_breaker_open',
  'no_policy_assigned',
  'denied_by_guardrail',
  'denied_by_policy',
  'endpoint_scope_mismatch',
  'grant_expired',
  'recipient_not_allowed',
  'repo_not_allowed',
  'agent_inactive',
] as const;
export type DenyReason = (typeof DENY_REASONS)[number];

export type HoldReason =
  | 'approval_required_by_policy'
  | 'approval_required_by_guardrail'
  | 'approval_required_by_grant';

type VerdictCommon = {
  /** One sentence for a person; may change between releases. */
  detail: string;
  evaluated: readonly CheckName[];
  notEvaluated: readonly CheckName[];
  matched: readonly MatchedRule[];
  /** Only without a concrete call: a rule's condition, or its selection of some of the scope's operations, may still hold or deny the concrete call. */
  conditional: boolean;
  /** The deciding check needs the body, which was not read: a call with another body may get another verdict. */
  unread?: true;
  /** The grant that was used; absent when none was found. For a child, narrowed to what its parent's grant allows now. */
  grant?: Grant;
  /** The scopes that the call needs for its content besides the one that it names; absent when there are none. */
  further?: readonly string[];
  /** For a call that may be made: what is masked in its answer. */
  mask?: Mask;
};

export type Verdict =
  /** `standing`: the standing approval that covers all holds of the call. */
  | (VerdictCommon & { kind: 'allow'; reason: 'approved'; standing?: StandingApproval })
  /**
   * `reason`: of the first of `holds`, the complete list of holds. `basis`: from which a standing approval can be created. `decideIn`: channels in which a
   * button may decide. `approvers`: how many different people have to approve, when it is more than one. `limit`: of the first rule that holds the call.
   */
  | (VerdictCommon & {
      kind: 'hold';
      reason: HoldReason;
      holds: readonly Hold[];
      basis?: Basis;
      decideIn: readonly string[];
      approvers?: number;
      limit?: ReportedLimit;
    })
  | (VerdictCommon & {
      kind: 'deny';
      reason: DenyReason;
      /** Present when the agent itself is halted. */
      halt?: AgentHalt;
      /** When a retry may succeed; always present with `halt`. */
      retryAfterSeconds?: number;
      /** The platform whose breaker refuses; absent when a breaker of all platforms does. */
      refusedPlatformId?: string;
      /** Recipients or repositories that the grant does not allow. */
      violating?: readonly string[];
      /** The limit of the rule that denies, if it has one. */
      limit?: ReportedLimit;
      /** No owner could grant the request: there is no such platform or scope, or the constraints of the grant refuse all of it. */
      notGrantable?: true;
      /** A guardrail with `effect: suspend` matched: the caller of `decide` suspends the agent. */
      suspend?: { guardrail: string };
    });
