/** Maps responses of POST /v1/actions to outcomes. */
import type { CallOutcome, DenyReason, Halt, Limit, NotReadyCode } from './action.ts';
import { errorOf } from './broker-error.ts';
import type { BrokerReply } from './send.ts';

type Body = Record<string, unknown>;
/** The members of `_meta` in a platform's answer that are read here. */
type AnswerMeta = {
  audit_id?: string;
  upstream_status?: number;
  encoding?: string;
  upstream_location?: string;
  upstream_followed?: string;
  upstream_content_type?: string;
} & {
  dropped_headers?: string[];
  upstream_headers?: Record<string, string>;
  next_actions?: { capability: string }[];
};

const NOT_READY: readonly string[] = [
  'agent_inactive',
  'platform_reauth_needed',
  'needs_consent',
  'platform_not_connected',
  'consent_required',
] satisfies NotReadyCode[];

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Returns the message (what to do) and the detail (what else is wrong, such as with an assertion) as one text. */
function wordsOf({ message, detail }: Body): string | undefined {
  const words = [message, detail].filter((one) => typeof one === 'string' && one !== '');
  return words.length === 0 ? undefined : words.join(' ');
}

/** `body`: the parsed response. */
export function readOutcome(reply: BrokerReply, body: Body): CallOutcome {
  const meta = (body._meta ?? {}) as AnswerMeta;
  const auditId = text(body.audit_id) ?? text(meta.audit_id);
  const repeated = reply.headers.get('idempotency-replayed') === 'true';
  if (reply.status === 200 && 'data' in body) return { ...answeredOutcome(body.data, meta), repeated };
  const approvalId = text(body.approval_id);
  if (reply.status === 202 && approvalId !== undefined)
    return {
      kind: 'held',
      approvalId,
      approvalUrl: text(body.approval_url),
      sentence: text(body.sentence),
      expiresAt: text(body.expires_at),
      message: String(body.message ?? ''),
      auditId,
      repeated,
    };
  if (reply.status === 403 && typeof body.reason === 'string')
    return readRefusal(body as Body & { reason: DenyReason }, meta, auditId, reply);
  const code = text(body.error) ?? '';
  if (NOT_READY.includes(code))
    return {
      kind: 'not_ready',
      code: code as NotReadyCode,
      message: wordsOf(body) ?? code,
      reason: text(body.reason),
      requestToken: text(body.request_token),
      consentUrl: text(body.consent_url) ?? text(body.connect_url),
      consentToken: text(body.consent_token),
      expiresAt: text(body.expires_at),
      auditId,
    };
  return { kind: 'failed', error: errorOf(reply, body) };
}

/** Builds the outcome for a platform's answer; `data` is its body. */
export function answeredOutcome(data: unknown, meta: AnswerMeta): Extract<CallOutcome, { kind: 'answered' }> {
  return {
    kind: 'answered',
    upstreamStatus: Number(meta.upstream_status ?? 200),
    data,
    auditId: text(meta.audit_id),
    encoding: meta.encoding,
    contentType: meta.upstream_content_type,
    location: meta.upstream_location,
    followed: meta.upstream_followed,
    headers: meta.upstream_headers ?? {},
    droppedHeaders: meta.dropped_headers ?? [],
    repeated: false,
  };
}

function readRefusal(
  body: Body & { reason: DenyReason },
  meta: AnswerMeta,
  auditId: string | undefined,
  reply: BrokerReply,
): CallOutcome {
  const { reason } = body;
  const detail = text(body.detail) ?? reason;
  if (typeof body.halt === 'object' && body.halt !== null)
    return { kind: 'halted', reason, detail, halt: body.halt as Halt, auditId };
  const retryAfter = reply.headers.get('retry-after');
  const leadsTo = (wanted: string) => (meta.next_actions ?? []).some(({ capability }) => capability === wanted);
  const notGrantable = leadsTo('permissions.read');
  return {
    kind: 'denied',
    reason,
    detail,
    violating: Array.isArray(body.violating) ? body.violating.map(String) : [],
    limit: typeof body.limit === 'object' && body.limit !== null ? (body.limit as Limit) : undefined,
    requestable: leadsTo('access_requests.create') && !notGrantable,
    notGrantable,
    retryAfterSeconds: retryAfter === null ? undefined : Number(retryAfter),
    platform: text(body.platform),
    auditId,
  };
}
