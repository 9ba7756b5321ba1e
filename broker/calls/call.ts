/** A governed request in flight: who makes it, what it asks for, and what is known of it so far. */
import type { CallRecord, Decided } from '../audit/outcome.ts';
import type { RecordedDecision } from '../audit/receipt.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import type { CallLease } from '../egress/call-lease.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import type { Honoured, Unidentified } from '../people/people.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { Instant, Verdict } from '../policy/facts.ts';
import type { Mask } from '../policy/masks/mask.ts';
import type { Holder } from '../runtime/shared-limit.ts';
import { pause } from '../runtime/waits.ts';
import type { CallWatch } from '../telemetry/call-watch.ts';
import type { Action } from '../wire/action.ts';
import type { ActionBody } from './action-body.ts';
import type { GitRequest } from './git-request.ts';
import type { RawRequest } from './raw-request.ts';
import type { StreamConsumer } from './streamed.ts';

/** A parsed request: it has an endpoint, and only headers that may be sent. Immutable. */
export type Call = {
  readonly who: AgentPrincipal;
  readonly action: Action;
  /** The endpoint, in normal form. */
  readonly path: string;
  readonly query: string;
  /** The agent's headers that are sent on. */
  readonly headers: Readonly<Record<string, string>>;
  readonly watch: CallWatch;
  /** The call's lease on the budget; begun before the platform is contacted. */
  readonly lease: CallLease;
  /** Receives the answer piece by piece, when it is streamed. */
  readonly taker?: StreamConsumer | undefined;
  /** Only for git requests. */
  readonly git?: GitRequest | undefined;
  /** Only for an operation that takes another kind of body than its platform does. */
  readonly given?: ActionBody | undefined;
  /** Only for a request that is passed on as its client wrote it. */
  readonly raw?: RawRequest | undefined;
  /** Aborted when the client has disconnected. */
  readonly left?: AbortSignal | undefined;
  /** Makes the intent durable, when it was only noted in the journal. */
  readonly makeDurable?: () => Promise<void>;
  /** Returns why a request body that is still being uploaded may not be completed; the end of the body is held back until it resolves. */
  readonly beforeEnd?: () => Promise<AccessEnded | undefined>;
  /** Only for a call under a standing approval: its id, and when and how a person gave it, as the attestation says. */
  readonly standing?: { readonly id: string; readonly decided_at: string; readonly how: string } | undefined;
  /** What is masked in the answer. */
  readonly mask?: Mask | undefined;
  /** The trace context to send, if the platform may have it. */
  readonly traceparent?: string | undefined;
  /** The person whom the call is for; undefined on platforms without one token per person. */
  readonly caller?: Honoured | Unidentified | undefined;
  readonly record: CallRecord;
};

/** Returns the idle timeout of an answer in milliseconds: the connection's, else the platform's; undefined when neither sets one. */
export const idleMsOf = (
  { idleMs }: Pick<ConnectionFacts, 'idleMs'>,
  { idle_seconds: seconds }: Pick<Manifest, 'idle_seconds'>,
): number | undefined => idleMs ?? (seconds === undefined ? undefined : seconds * 1000);

/** The record of a call that was not parsed yet; a malformed call lacks some of `asked`. */
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

/** The id under which a call is counted and scheduled: an agent and its children share their budget and turns. */
export const familyOf = ({ agent }: Pick<AgentPrincipal, 'agent'>): string => agent.parent_id ?? agent.id;

/** Whose share of the limits a call uses. */
export const holderOf = (who: Pick<AgentPrincipal, 'agent'>): Holder => ({
  family: familyOf(who),
  organisation: who.agent.organisation_id,
});

/** How long an approved call waits for a slot. */
const APPROVED_WAIT_MS = 60_000;
const RETRY_MS = 100;

/** Takes a slot among the concurrent calls. `after_wait`: it got one after waiting, so the facts may have changed meanwhile. */
export async function beginCall({ lease }: Call, isApproved: boolean): Promise<'at_once' | 'after_wait' | 'too_many'> {
  if (lease.begin()) return 'at_once';
  const until = performance.now() + (isApproved ? APPROVED_WAIT_MS : 0);
  while (performance.now() < until) {
    await pause(RETRY_MS);
    if (lease.begin()) return 'after_wait';
  }
  return 'too_many';
}

/** Returns a verdict with the policy and guardrail versions it is based on, for the audit row. */
export function decidedBy(verdict: Verdict, { facts }: LoadedFacts): Decided {
  const { policy, guardrails } = facts;
  const decision: RecordedDecision = {
    policy: policy ? { id: policy.id, name: policy.name, version: policy.version } : null,
    guardrails: { version: guardrails.version },
    matched: verdict.matched,
    evaluated: verdict.evaluated,
  };
  return { verdict, decision: JSON.stringify(decision) };
}

/** Returns the call with more members in its record. */
export const withRecord = <C extends Call>(call: C, more: Partial<CallRecord>): C => ({
  ...call,
  record: { ...call.record, ...more },
});
