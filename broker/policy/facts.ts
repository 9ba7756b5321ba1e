/**
 * What a decision looks at (facts), what is asked (ask) and what comes out (verdict): plain data, no behaviour.
 * Every door (governed calls, replays, permissions, AuthZEN, TRQP, git) fills the same types.
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
import type { ToldLimit } from './limit.ts';
import type { Mask } from './mask.ts';
import type { PlatformRules } from './platform-rules.ts';
import {
  EFFECTS,
  type Effect,
  type Guardrails,
  type MatchedRule,
  type Policy,
  type Rule,
  type RuleSource,
} from './rule.ts';
import type { Basis, Hold, Repeat, StandingApproval } from './standing-terms.ts';

/** Milliseconds since the Unix epoch. Time is always an argument here. */
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

/** Instead of a platform, where facts are asked for: all platforms on which the agent has grants. */
export const ALL_PLATFORMS = '*';

export const AGENT_STATUSES = ['active', 'suspended', 'revoked', 'pending', 'pending_bind', 'deleted'] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** `reauth_needed`: the platform refused the stored credential. `not_connected`: there is none. */
export type GrantedConnection = { label: string; status: 'active' | 'reauth_needed' | 'not_connected' };

export type Grant = {
  id: string;
  platformId: string;
  /** null: the platform's default connection. */
  connectionId: string | null;
  /** The connection that it leads to, where that was read with it. */
  connection?: GrantedConnection;
  scopes: readonly string[];
  constraints: Constraints;
  requireApproval: boolean;
  expiresAt: Instant | null;
};

/** The parent of a child identity, with its grants on the same platform, and its breakers, as they are now. */
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
  /** Of a child those of its parent. */
  labels?: readonly string[];
  parent?: ParentFacts;
};

/** A breaker that is not closed. `openUntil` in the past means half-open: this call may be the trial, unless one is out. */
export type BreakerFacts = {
  cause: 'breaker_auth_failure' | 'breaker_api_error' | 'breaker_upstream_failure';
  /** It refuses the calls to this platform only; absent: it halts the agent. */
  platformId?: string;
  openedAt: Instant;
  openUntil: Instant;
  /** Until when a trial call that is on its way is waited for at most; null when none is. */
  trialUntil: Instant | null;
};

export type PlatformFacts = {
  platformId: string;
  name: string;
  /** Of its manifest. */
  version: number;
  /** The organisation's switch. */
  suspended: boolean;
  defaultConnectionId: string | null;
  rules: PlatformRules;
  /** Each person has a token of their own there, and the connection none that calls use. */
  perPerson?: true;
};

export type Facts = {
  agent: AgentFacts;
  /** undefined: the organisation has no such platform. */
  platform?: PlatformFacts;
  /** The agent's grants on that platform. */
  grants: readonly Grant[];
  /** Of a child its parent's. */
  policy?: Policy;
  guardrails: Guardrails;
  breakers: readonly BreakerFacts[];
  /** Those of the agent on that platform that have not ended; their time may be over. Absent: there is none. */
  standing?: readonly StandingApproval[];
};

/** `repeat`: the call as it is sent, for comparing with those that were approved; without it no standing approval stands in. */
export type Ask = { platformId: string; scope: string; connectionId?: string; call?: CallAsk; repeat?: Repeat };

/** In the order in which they run (specification, TRQP response base; decisions, Deciding). */
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

/** `reason` of ActionDenied, and `agent_inactive`, which the wire answers as 409. */
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

type Looked = {
  /** One sentence for a person; may change between releases. */
  detail: string;
  evaluated: readonly CheckName[];
  notEvaluated: readonly CheckName[];
  matched: readonly MatchedRule[];
  /**
   * Only without a concrete call: a rule's condition, or its narrowing to some of the scope's operations, may still hold
   * or deny the real call.
   */
  conditional: boolean;
  /** What decides has to know the body, which was not read: a call with another body may be decided otherwise. */
  unread?: true;
  /** The grant that was used, when one was found; for a child narrowed to what its parent's grant allows now. */
  grant?: Grant;
  /** Of a call that may be made: what is masked in its answer. */
  mask?: Mask;
};

export type Verdict =
  /** `standing`: the approval that stands in for what holds it. */
  | (Looked & { kind: 'allow'; reason: 'approved'; standing?: StandingApproval })
  /**
   * `reason`: of the first of `holds`, which is all that holds it. `basis`: from which a standing approval can be made. `decideIn`: channels
   * in which a button may decide. `limit`: of the rule that holds it first.
   */
  | (Looked & {
      kind: 'hold';
      reason: HoldReason;
      holds: readonly Hold[];
      basis?: Basis;
      decideIn: readonly string[];
      limit?: ToldLimit;
    })
  | (Looked & {
      kind: 'deny';
      reason: DenyReason;
      /** Present when the agent itself is halted. */
      halt?: AgentHalt;
      /** When it may be tried again; with `halt` it is there. */
      retryAfterSeconds?: number;
      /** The platform whose breaker refuses; absent where one of all platforms does. */
      refusedPlatformId?: string;
      /** Recipients or repositories that the grant does not allow. */
      violating?: readonly string[];
      /** Of the rule that denies, where it has one. */
      limit?: ToldLimit;
      /** No owner could grant what was asked for: there is no such platform or scope, or the limits of the grant refuse all of it. */
      notGrantable?: true;
      /** A guardrail with `effect: suspend` matched: the caller of `decide` suspends the agent. */
      suspend?: { guardrail: string };
    });
