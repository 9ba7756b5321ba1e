/** The state of a held call, for its agent (specification, Approval). */

type Common = {
  approvalId: string;
  createdAt: string;
  expiresAt: string;
  approvalUrl: string | undefined;
  /** What the call does, in the words shown to the person who decides; undefined from an older broker. */
  sentence: string | undefined;
  /** The call as the deciding person corrected it, which is made in place of the requested one; undefined without a correction. */
  corrected: Corrected | undefined;
  /** The audit row of the held call, and once it was approved, of the call that is made; an older broker names only the latter. */
  auditId: string | undefined;
};

/** `data`: null when the corrected call has no data. */
export type Corrected = { endpoint: string; data: unknown };

/** The owner's note. */
type Decided = { note: string | undefined };

export type Approval = Common &
  (
    | { state: 'pending' }
    /** Approved, replay in progress. */
    | { state: 'running' }
    | (Decided & { state: 'done'; executedAt: string; result: ApprovedResult })
    /** Approved, but the replay failed, or its result is unknown: `error` begins with the reason. */
    | (Decided & { state: 'not_made'; error: string; mayHaveActed: boolean })
    | (Decided & { state: 'denied' })
    | { state: 'expired' }
  );

/** The platform's response. Beyond 256 KiB, `data` is its beginning as text. */
export type ApprovedResult = {
  status: number;
  data: unknown;
  encoding: string | undefined;
  /** Media type of a body that is no JSON. */
  contentType: string | undefined;
  /** Where the platform redirects to; the redirect was not followed. */
  location: string | undefined;
  /** The host that the platform redirected this read to, and that gave this answer. */
  followed: string | undefined;
  /** Headers of the response, such as `link` and `retry-after`, by name in lower case. */
  headers: Readonly<Record<string, string>>;
  truncated: boolean;
  bytes: number | undefined;
};

/** Whether the state is final. */
export const isSettled = ({ state }: Approval): boolean => state !== 'pending' && state !== 'running';

type Body = Record<string, unknown>;
const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads the body of GET /v1/approvals/{id}. Returns undefined when the body is not an approval. */
export function readApproval(body: Body): Approval | undefined {
  const approvalId = String(body.approval_id);
  const common: Common = {
    approvalId,
    createdAt: String(body.created_at),
    expiresAt: String(body.expires_at),
    approvalUrl: text(body.approval_url),
    sentence: text(body.sentence),
    corrected: readCorrected(body.corrected),
    auditId: text(body.audit_id),
  };
  const decided: Decided = { note: text(body.note) };
  if (body.status === 'pending') return { ...common, state: 'pending' };
  if (body.status === 'expired') return { ...common, state: 'expired' };
  if (body.status === 'denied') return { ...common, ...decided, state: 'denied' };
  if (body.status !== 'approved') return undefined;
  const error = text(body.execution_error);
  if (error !== undefined)
    return {
      ...common,
      ...decided,
      state: 'not_made',
      error,
      mayHaveActed: /^(outcome unknown|upstream_response_blocked|result_)/.test(error),
    };
  const result = body.result as Body | undefined;
  const executedAt = text(body.executed_at);
  if (result === undefined || executedAt === undefined) return { ...common, state: 'running' };
  return { ...common, ...decided, state: 'done', executedAt, result: readResult(result) };
}

const readCorrected = (corrected: unknown): Corrected | undefined => {
  if (typeof corrected !== 'object' || corrected === null) return undefined;
  const { endpoint, data = null } = corrected as Body;
  return { endpoint: String(endpoint), data };
};

const readResult = (result: Body): ApprovedResult => ({
  status: Number(result.status),
  data: result.data,
  encoding: text(result.encoding),
  contentType: text(result.content_type),
  location: text(result.location),
  followed: text(result.followed),
  headers: (result.headers ?? {}) as Record<string, string>,
  truncated: result.truncated === true,
  bytes: typeof result.bytes === 'number' ? result.bytes : undefined,
});
