/**
 * The typed client for agents: signs, calls, waits. Every response is returned as a value; refusals and errors have the code of
 * the error envelope. Only an aborted signal throws.
 */
import type { Action, Caller, CallOutcome } from './action.ts';
import {
  type Child,
  type Identity,
  type PendingActions,
  type Receipt,
  type Reported,
  readChild,
  readIdentity,
  readPendingActions,
  readReceipt,
  readReported,
} from './agent-records.ts';
import { type Approval, isSettled, readApproval } from './approval.ts';
import { BrokerError, unreachableError } from './broker-error.ts';
import type { Permissions } from './permissions.ts';
import { MAX_WAIT_SECONDS, pollUntil } from './poll-until.ts';
import {
  type AccessRequest,
  type AccessStatus,
  type Answer,
  type ConsentStatus,
  type KnownPermissions,
  outcomeOf,
  readAccessRequest,
  readAccessStatus,
  readAnswer,
  readConsentStatus,
  readPermissions,
  readStartedConsent,
  type StartedConsent,
} from './read-answers.ts';
import { sendRetryingReads } from './retry-reads.ts';
import { type BrokerReply, type BrokerRequest, BrokerUnreachable, type Send } from './send.ts';

export type CallOptions = {
  /** A retry with the same key within 24 hours returns the first response. */
  idempotencyKey?: string | undefined;
  /** W3C trace context. Where the broker traces the call, its trace links to this one. */
  traceparent?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** `waitSeconds`: at most 50; resolves as soon as the state is final. */
export type WaitOptions = { waitSeconds?: number | undefined; signal?: AbortSignal | undefined };
/** `timeoutSeconds`: how long to wait for the final state; without a limit when it is absent. */
export type SettledOptions = { timeoutSeconds?: number | undefined; signal?: AbortSignal | undefined };

export type ConsentAsk = { platform: string; caller: Caller; connection_id?: string | undefined };
export type AccessAsk = { platform: string; scope?: string | undefined; reason?: string | undefined };
export type ChildAsk = {
  name?: string | undefined;
  ttl_seconds?: number | undefined;
  grants: {
    platform: string;
    scopes: string[];
    connection_id?: string | null | undefined;
    constraints?: object | undefined;
  }[];
};
export type Report = {
  message: string;
  severity?: 'info' | 'warning' | 'error' | undefined;
  code?: string | undefined;
  platform?: string | undefined;
  endpoint?: string | undefined;
  correlation_id?: string | undefined;
  context?: object | undefined;
};

export type AgentClient = ReturnType<typeof agentClient>;

/** Longer than the longest time a platform may take: 600 s where its connection says so (docs/governance.md, connections). */
const CALL_TIMEOUT_MS = 660_000;

type Body = Record<string, unknown>;

/** The client on top of a transport. */
export function agentClient(send: Send) {
  let known: KnownPermissions | undefined;

  async function ask(request: BrokerRequest): Promise<{ reply: BrokerReply } | BrokerError> {
    try {
      return { reply: await sendRetryingReads(send, request) };
    } catch (error) {
      if (error instanceof BrokerUnreachable) return unreachableError(error);
      throw error;
    }
  }

  async function answer<T>(
    request: BrokerRequest,
    read: (body: Body, reply: BrokerReply) => T | undefined,
  ): Promise<Answer<T>> {
    const asked = await ask(request);
    if (asked instanceof BrokerError) return { ok: false, error: asked };
    return readAnswer(asked.reply, read);
  }

  const get = <T>(path: string, read: (body: Body) => T | undefined, signal?: AbortSignal): Promise<Answer<T>> =>
    answer({ method: 'GET', path, ...(signal && { signal }) }, read);

  const approval = (id: string, { waitSeconds = 0, signal }: WaitOptions = {}): Promise<Answer<Approval>> =>
    get(`/v1/approvals/${encodeURIComponent(id)}${waitQuery(waitSeconds)}`, readApproval, signal);

  return {
    /** POST /v1/actions. A GET without a response is retried twice at most; other calls are never retried. */
    async call(action: Action, { idempotencyKey, traceparent, signal }: CallOptions = {}): Promise<CallOutcome> {
      const asked = await ask({
        method: 'POST',
        path: '/v1/actions',
        body: action,
        headers: {
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
          ...(traceparent !== undefined && { traceparent }),
        },
        timeoutMs: CALL_TIMEOUT_MS,
        ...(signal && { signal }),
      });
      return outcomeOf(action, asked instanceof BrokerError ? asked : asked.reply);
    },

    /** GET /v1/approvals/{id}. */
    approval,

    /**
     * Waits until a held call is final, or for `timeoutSeconds` (default: no limit), also while the broker is restarted. Returns an error that
     * does not pass, or one that has lasted for five minutes.
     */
    settled: (
      id: string,
      { timeoutSeconds = Number.POSITIVE_INFINITY, signal }: SettledOptions = {},
    ): Promise<Answer<Approval>> =>
      pollUntil((waitSeconds) => approval(id, { waitSeconds, signal }), isSettled, {
        endsAt: Date.now() + timeoutSeconds * 1000,
        signal,
      }),

    /** GET /v1/agent/permissions, with the ETag of the last response. `changed`: whether the permissions differ from that response's. */
    async permissions(signal?: AbortSignal): Promise<Answer<{ permissions: Permissions; changed: boolean }>> {
      const before = known;
      return await answer(
        {
          method: 'GET',
          path: '/v1/agent/permissions',
          ...(before && { headers: { 'if-none-match': before.etag } }),
          ...(signal && { signal }),
        },
        (body, reply) => {
          const read = readPermissions(before, body, reply);
          known = read?.known ?? before;
          return read && { permissions: read.known.permissions, changed: read.changed };
        },
      );
    },

    /** POST /v1/access-request. Repeating it while it is pending returns the same request. */
    requestAccess: (asked: AccessAsk, signal?: AbortSignal): Promise<Answer<AccessRequest>> =>
      answer({ method: 'POST', path: '/v1/access-request', body: asked, ...(signal && { signal }) }, readAccessRequest),

    /** GET /v1/access-request/status/{token}. */
    accessRequest: (token: string, { waitSeconds = 0, signal }: WaitOptions = {}): Promise<Answer<AccessStatus>> =>
      get(`/v1/access-request/status/${encodeURIComponent(token)}${waitQuery(waitSeconds)}`, readAccessStatus, signal),

    /** POST /v1/consent/caller/start. Repeating it while the person has not finished returns the same consent. */
    startConsent: (asked: ConsentAsk, signal?: AbortSignal): Promise<Answer<StartedConsent>> =>
      answer(
        { method: 'POST', path: '/v1/consent/caller/start', body: asked, ...(signal && { signal }) },
        readStartedConsent,
      ),

    /** GET /v1/consent/caller/status/{token}. */
    consent: (token: string, { waitSeconds = 0, signal }: WaitOptions = {}): Promise<Answer<ConsentStatus>> =>
      get(`/v1/consent/caller/status/${encodeURIComponent(token)}${waitQuery(waitSeconds)}`, readConsentStatus, signal),

    /** GET /v1/agents/me: also works while the agent is halted. */
    me: (): Promise<Answer<Identity>> => get('/v1/agents/me', readIdentity),

    /** GET /v1/agents/me/pending-actions: pending calls, and the results of the last 24 hours. */
    pendingActions: (): Promise<Answer<PendingActions>> => get('/v1/agents/me/pending-actions', readPendingActions),

    /** POST /v1/agents/children: a child identity with fewer permissions and a shorter lifetime. */
    issueChild: (child: ChildAsk): Promise<Answer<Child>> =>
      answer({ method: 'POST', path: '/v1/agents/children', body: child }, readChild),

    /** GET /v1/audit/{id}/receipt: the signed receipt of one decision. */
    receipt: (auditId: string): Promise<Answer<Receipt>> =>
      get(`/v1/audit/${encodeURIComponent(auditId)}/receipt`, readReceipt),

    /** POST /v1/agents/self/diagnostics: reports an unexpected response to the owners. */
    report: (report: Report): Promise<Answer<Reported>> =>
      answer({ method: 'POST', path: '/v1/agents/self/diagnostics', body: report }, readReported),
  };
}

const waitQuery = (seconds: number): string =>
  seconds > 0 ? `?wait=${Math.min(Math.ceil(seconds), MAX_WAIT_SECONDS)}` : '';
