/** What the broker returns about the agent itself, its children and its calls: the members are those of the broker's own answers. */
import type { Halt } from './action.ts';

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

export type Reported = { id: string; received_at: string };

type Body = Record<string, unknown>;
const isText = (value: unknown): value is string => typeof value === 'string';

// Each reader returns undefined when the body is not the broker's: an answer of a proxy, or of a page on the way, may have the status 200, too.

export const readIdentity = (body: Body): Identity | undefined =>
  isText(body.agent_id) && isText(body.agent_status) ? (body as Identity) : undefined;

export const readPendingActions = (body: Body): PendingActions | undefined =>
  Array.isArray(body.pending) && Array.isArray(body.recently_completed) ? (body as PendingActions) : undefined;

export const readChild = (body: Body): Child | undefined =>
  isText(body.child_agent_id) && isText(body.bearer_token) ? (body as Child) : undefined;

export const readReceipt = (body: Body): Receipt | undefined =>
  isText(body.audit_id) && isText(body.receipt) ? (body as Receipt) : undefined;

export const readReported = (body: Body): Reported | undefined =>
  isText(body.id) && isText(body.received_at) ? (body as Reported) : undefined;
