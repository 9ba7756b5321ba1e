/** A governed request in flight: who asks for what, and what is known of it so far. */
import type { CallRecord, Decided } from '../audit/outcome.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import type { CallLease } from '../egress/call-budget.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import type { Honoured, Unidentified } from '../people/people.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { Instant, Verdict } from '../policy/facts.ts';
import type { Mask } from '../policy/mask.ts';
import { pause } from '../runtime/waits.ts';
import type { CallWatch } from '../telemetry/call-watch.ts';
import type { Action } from '../wire/action.ts';
import type { GitRequest } from './git-request.ts';
import type { GivenBody } from './given-body.ts';
import type { RawRequest } from './raw-request.ts';
import type { StreamTaker } from './streamed.ts';

/** A request that was read: it has an endpoint, and headers that may be sent. Immutable. */
export type Call = {
  readonly who: AgentPrincipal;
  readonly action: Action;
  /** The endpoint, in normal form. */
  readonly path: string;
  readonly query: string;
  /** The agent's headers that are sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly watch: CallWatch;
  /** Begun before a platform is asked. */
  readonly lease: CallLease;
  /** Where the answer is to be passed on as it comes: who takes it. */
  readonly taker?: StreamTaker | undefined;
  /** Of a git request. */
  readonly git?: GitRequest | undefined;
  /** Of a request whose operation takes another body than its platform does. */
  readonly given?: GivenBody | undefined;
  /** Of a request that is passed on as its client wrote it. */
  readonly raw?: RawRequest | undefined;
  /** Aborted when whoever asked has left. */
  readonly left?: AbortSignal | undefined;
  /** Makes the intent durable, where it was only noted. */
  readonly makeDurable?: () => Promise<void>;
  /** Why a body that was still on its way may not be sent to its end, which is kept back until this is known. */
  readonly beforeEnd?: () => Promise<AccessEnded | undefined>;
  /** Where it is made by a standing approval: when and how a person gave that, as a server is told. */
  readonly standing?: { readonly id: string; readonly decided_at: string; readonly how: string } | undefined;
  /** What is masked in its answer. */
  readonly mask?: Mask | undefined;
  /** The trace context that a platform may be sent. */
  readonly traceparent?: string | undefined;
  /** For whom it is, where the platform holds one token per person; undefined: it holds none. */
  readonly caller?: Honoured | Unidentified | undefined;
  readonly record: CallRecord;
};

/** How long an answer may be silent, in milliseconds: as the connection says, or its platform; undefined: neither does. */
export const idleMsOf = (
  { idleMs }: Pick<ConnectionFacts, 'idleMs'>,
  { idle_seconds: seconds }: Pick<Manifest, 'idle_seconds'>,
): number | undefined => idleMs ?? (seconds === undefined ? undefined : seconds * 1000);

/** A call before anything is known but who asks for what; of a malformed one, less than that. */
export function beginRecord(
  { agent, sessionId, staticKey, workload }: Pick<AgentPrincipal, 'agent' | 'sessionId' | 'staticKey' | 'workload'>,
  { platform, scope, method, reason }: CallRecord['asked'],
  { auditId, correlationId, now }: { auditId: string; correlationId: string; now: Instant },
  { instanceId }: Pick<Broker, 'instanceId'>,
): CallRecord {
  return {
    auditId,
    correlationId,
    createdAt: now,
    instanceId,
    organisationId: agent.organisation_id,
    agent: { id: agent.id, agentId: agent.agent_id, parentAgentId: agent.parent_agent_id || null },
    sessionId,
    asked: {
      ...(platform !== undefined && { platform }),
      ...(scope !== undefined && { scope }),
      ...(method !== undefined && { method }),
      ...(reason !== undefined && { reason }),
    },
    path: null,
    droppedHeaders: [],
    pii: null,
    git: undefined,
    decided: undefined,
    connectionId: null,
    approval: undefined,
    refreshUnavailable: false,
    bearer: (staticKey && { static_key: staticKey.id }) ?? (workload && { workload: workload.id }),
  };
}

/** Whose budget a call is on, and with whom it takes turns: an agent and its children are one family. */
export const familyOf = ({ agent }: Pick<AgentPrincipal, 'agent'>): string => agent.parent_id ?? agent.id;

/** A call that a person approved waits for its place so long. */
const APPROVED_PATIENCE_MS = 60_000;
const AGAIN_MS = 100;

/**
 * Takes its place among the calls that are made at once. `after_wait`: it has one now, and what decides it may be another than when
 * it began to wait.
 */
export async function beginCall({ lease }: Call, isApproved: boolean): Promise<'at_once' | 'after_wait' | 'too_many'> {
  if (lease.begin()) return 'at_once';
  const until = performance.now() + (isApproved ? APPROVED_PATIENCE_MS : 0);
  while (performance.now() < until) {
    await pause(AGAIN_MS);
    if (lease.begin()) return 'after_wait';
  }
  return 'too_many';
}

/** A decision with what it was made on, as it goes on record. */
export function decidedBy(verdict: Verdict, { facts }: LoadedFacts): Decided {
  const { policy, guardrails } = facts;
  return {
    verdict,
    decision: {
      policy: policy ? { id: policy.id, name: policy.name, version: policy.version } : null,
      guardrails: { version: guardrails.version },
      matched: verdict.matched,
      evaluated: verdict.evaluated,
    },
  };
}

/** The call with more on record. */
export const withRecord = <C extends Call>(call: C, more: Partial<CallRecord>): C => ({
  ...call,
  record: { ...call.record, ...more },
});
