/** A refusal by the broker, or a transport error, with a code for programs (specification, Errors). */
import type { BrokerReply, BrokerUnreachable } from './send.ts';

export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  /** The envelope's `error`; `unreachable` without a response, `unexpected_answer` when the response did not come from a broker. */
  readonly code: string;
  /** HTTP status; undefined without a response. */
  readonly status: number | undefined;
  readonly correlationId: string | undefined;
  /** The delay that `Retry-After` asks for. */
  readonly retryAfterSeconds: number | undefined;
  /** The call may have been executed: check the platform before retrying. */
  readonly mayHaveActed: boolean;
  /** How far this machine's clock is ahead of the broker's, in seconds, by the Date header. */
  readonly clockAheadSeconds: number | undefined;
  /** The complete body. */
  readonly body: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, facts: Partial<Omit<BrokerError, 'code' | 'message' | 'name'>> = {}) {
    super(message);
    this.code = code;
    this.status = facts.status;
    this.correlationId = facts.correlationId;
    this.retryAfterSeconds = facts.retryAfterSeconds;
    this.mayHaveActed = facts.mayHaveActed ?? false;
    this.clockAheadSeconds = facts.clockAheadSeconds;
    this.body = facts.body ?? {};
  }
}

/** The error for an unsuccessful response. */
export function errorOf(reply: BrokerReply, body: Readonly<Record<string, unknown>>): BrokerError {
  const { status } = reply;
  const code = typeof body.error === 'string' ? body.error : 'unexpected_answer';
  const words = [body.detail, body.message].find((text) => typeof text === 'string' && text !== '');
  const message =
    code === 'unexpected_answer'
      ? `The response is not from a broker (status ${status}).`
      : String(words ?? `The broker answered ${status} ${code}.`);
  const retryAfter = Number(reply.headers.get('retry-after') ?? Number.NaN);
  return new BrokerError(code, message, {
    status,
    correlationId: typeof body.correlation_id === 'string' ? body.correlation_id : undefined,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
    mayHaveActed:
      MAY_HAVE_ACTED.has(code) ||
      (code === 'unexpected_answer' && !isRefusal(status)) ||
      body.outcome === 'unknown' ||
      /may have been made/.test(message),
    clockAheadSeconds: clockAhead(reply),
    body,
  });
}

const MAY_HAVE_ACTED = new Set([
  'upstream_response_blocked',
  'idempotency_outcome_unknown',
  'idempotency_in_progress',
  'internal_error',
]);

/** After a timeout or a truncated response a proxy may have forwarded the request. A proxy that refuses it (4xx) did not. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500;

export function unreachableError(error: BrokerUnreachable): BrokerError {
  return new BrokerError(error.code, error.message, { mayHaveActed: error.maybeSent });
}

/** The header has whole seconds, so on average the time is half a second later. */
function clockAhead(reply: BrokerReply): number | undefined {
  const date = Date.parse(reply.headers.get('date') ?? '');
  return Number.isNaN(date) ? undefined : Math.round((Date.now() - (date + 500)) / 1000);
}
