/**
 * The typed client for agents: signs, calls, waits. Every response is returned as a value; refusals and errors have the code of
 * the error envelope. Only an aborted signal throws.
 */
import type { Action, Caller, CallOutcome, Halt } from './action.ts';
import { type Approval, isSettled, readApproval } from './approval.ts';
import { BrokerError, unreachableError } from './broker-error.ts';
import type { Permissions } from './permissions.ts';
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
  idempotencyKey?: string;
  /** W3C trace context. Where the broker traces the call, its trace links to this one. */
  traceparent?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** `waitSeconds`: at most 50; resolves as soon as the state is final. */
export type WaitOptions = { waitSeconds?: number; signal?: AbortSignal | undefined };

export type ConsentAsk = { platform: string; caller: Caller; connection_id?: string };
export type AccessAsk = { platform: string; scope?: string; reason?: string };
export type Identity = {
  agent_id: string;
  did: string;
  name: string;
  owner_id: string;
  org_id: string | null;
  agent_type: string | null;
  agent_status: string;
  parent_agent_id: string | null;
  created_at: string | null;
  expires_at: string | null;
  halt?: Halt;
};

export type ChildAsk = {
  name?: string;
  ttl_seconds?: number;
  grants: {
    platform: string;
    scopes: string[];
    connection_id?: string | null;
    constraints?: Record<string, unknown>;
  }[];
};
export type Child = {
  child_agent_id: string;
  /** Returned once. Pass it to the child's client as `bearer`. */
  bearer_token: string;
  expires_at: string;
  /** Upper bound of the child's permissions: never more than the parent's current ones. */
  granted: {
    platform: string;
    scopes: string[];
    connection_id: string | null;
    constraints: Record<string, unknown>;
    require_approval: boolean;
    expires_at: string | null;
  }[];
};

export type Receipt = { audit_id: string; kid: string; receipt: string; jwks_url: string; did: string };
export type Report = {
  message: string;
  severity?: 'info' | 'warning' | 'error';
  code?: string;
  platform?: string;
  endpoint?: string;
  correlation_id?: string;
  context?: Record<string, unknown>;
};

export type PendingActions = {
  pending: { approval_id: string; platform_id: string; scope: string; created_at: string; expires_at: string | null }[];
  recently_completed: {
    approval_id: string;
    platform_id: string;
    scope: string;
    status: 'approved' | 'denied' | 'expired';
    created_at: string;
    executed_at: string | null;
    result_summary: string | null;
    execution_error: string | null;
  }[];
};

export type AgentClient = ReturnType<typeof agentClient>;

/** Longer than the longest time a platform may take: 600 s where its connection says so (docs/governance.md, connections). */
const CALL_TIMEOUT_MS = 660_000;
/** Limit of the broker's long polls. */
const MOST_WAIT_SECONDS = 50;

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

    /** Waits until a held call is final, or for `timeoutSeconds` (default: no limit). */
    async settled(
      id: string,
      { timeoutSeconds = Number.POSITIVE_INFINITY, signal }: { timeoutSeconds?: number; signal?: AbortSignal } = {},
    ): Promise<Answer<Approval>> {
      const end = Date.now() + timeoutSeconds * 1000;
      for (;;) {
        const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
        const found = await approval(id, { waitSeconds: Math.min(left, MOST_WAIT_SECONDS), signal });
        if (!found.ok || isSettled(found.value) || Date.now() >= end) return found;
      }
    },

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
    me: (): Promise<Answer<Identity>> => get('/v1/agents/me', (body) => body as Identity),

    /** GET /v1/agents/me/pending-actions: pending calls, and the results of the last 24 hours. */
    pendingActions: (): Promise<Answer<PendingActions>> =>
      get('/v1/agents/me/pending-actions', (body) => body as PendingActions),

    /** POST /v1/agents/children: a child identity with fewer permissions and a shorter lifetime. */
    issueChild: (child: ChildAsk): Promise<Answer<Child>> =>
      answer({ method: 'POST', path: '/v1/agents/children', body: child }, (body) => body as Child),

    /** GET /v1/audit/{id}/receipt: the signed receipt of one decision. */
    receipt: (auditId: string): Promise<Answer<Receipt>> =>
      get(`/v1/audit/${encodeURIComponent(auditId)}/receipt`, (body) => body as Receipt),

    /** POST /v1/agents/self/diagnostics: reports an unexpected response to the owners. */
    report: (report: Report): Promise<Answer<{ id: string; received_at: string }>> =>
      answer(
        { method: 'POST', path: '/v1/agents/self/diagnostics', body: report },
        (body) => body as { id: string; received_at: string },
      ),
  };
}

const waitQuery = (seconds: number): string =>
  seconds > 0 ? `?wait=${Math.min(Math.ceil(seconds), MOST_WAIT_SECONDS)}` : '';
