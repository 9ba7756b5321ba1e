/** Refusals of `/proxy`: in the error form of the platform where its manifest has one, else problem+json (RFC 9457). */
import { STATUS_CODES } from 'node:http';
import { errorBody } from '../../../json/error-body.ts';
import type { JsonValue } from '../../../json/json-value.ts';
import { platformEffectOf } from '../../audit/effect.ts';
import { BLOCKED_DETAILS, type StreamOutcome } from '../../audit/outcome.ts';
import type { BlockedCause } from '../../egress/answers/answer.ts';
import { BODY_CUT } from '../../egress/unreachable.ts';
import { hasSign } from '../../platforms/error-sign.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { Method } from '../../policy/facts.ts';
import { entryFor } from '../../policy/operation-index.ts';
import type { PlatformRules } from '../../policy/platform-rules.ts';
import { ERRORS, type ErrorCode, type Refusal, UNREPEATED } from '../errors.ts';
import { afterRefusal, type Caller, callerOf, type Wanted } from '../next-step.ts';
import { isGrantable, outcomeReply } from '../outcome-reply.ts';
import { PROBLEM_TYPE } from '../problem.ts';
import type { Reply } from '../reply.ts';
import type { Context } from '../route.ts';
import { sentence } from '../unready.ts';

type RefusalContext = Pick<Context<'raw'>, 'services' | 'correlationId' | 'request' | 'who'>;

/** Tells the platform's clients not to retry: the same request would be refused again, or would ask a person again. */
const NO_RETRY: Readonly<Record<string, string>> = { 'x-should-retry': 'false', 'stripe-should-retry': 'false' };

/** Stripe's clients retry a 429 only with this header, and wait at most a few seconds, whatever `Retry-After` says. */
const RETRY_STRIPE: Readonly<Record<string, string>> = { 'stripe-should-retry': 'true' };
const RETRY_AFTER_S = 5;

export type RawRefusal = {
  status: number;
  code: string;
  detail: string;
  headers?: Record<string, string | string[]> | undefined;
  extra?: Record<string, unknown>;
  /** Whether a retry may soon succeed. */
  retry?: boolean;
};

/** The platform's rules about errors. */
export type Shape = {
  manifest: Partial<Pick<Manifest, 'error_body' | 'failed_if'>>;
  rules: Pick<PlatformRules, 'errorStatus'>;
};

/** The request, where it is known. `endpoint`: path and query. */
export type AskedFor = { platform: Shape | undefined; method: string; endpoint: string };

/** Formats a refusal as an answer. */
export function refusedReply(
  refusal: RawRefusal,
  { correlationId }: Pick<Context, 'correlationId'>,
  asked?: AskedFor,
): Reply {
  const manifest = asked?.platform?.manifest;
  const { status, code, detail, headers, extra = {}, retry = false } = refusal;
  const own = manifest?.error_body;
  const problem = {
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail,
    error: code,
    correlation_id: correlationId,
    ...extra,
  };
  const { type, body } =
    own === undefined
      ? { type: PROBLEM_TYPE, body: JSON.stringify(problem) }
      : errorBody(own as JsonValue, { status, code, detail: `agent-broker: ${code}: ${detail}` });
  const byStatus = retry ? undefined : statusOf(asked);
  if (byStatus !== undefined) {
    const { 'Retry-After': _, ...others } = headers ?? {};
    // Slack's client gives up immediately at a 429 whose Retry-After it cannot parse, and quotes that header in its error.
    const retryAfter = byStatus === 429 ? { 'Retry-After': inHeader(`agent-broker: ${code}: ${detail}`) } : {};
    return { status: byStatus, type, body, headers: { ...others, ...retryAfter, ...NO_RETRY } };
  }
  // Such a platform reports errors with status 200; Slack's client retries any other status for half an hour.
  const isInBody = own !== undefined && !retry && hasSign(manifest?.failed_if, own);
  const isSoon = retry && status === 429 && Number(headers?.['Retry-After']) <= RETRY_AFTER_S;
  const advice = retry ? isSoon && RETRY_STRIPE : NO_RETRY;
  return { status: isInBody ? 200 : status, type, body, headers: { ...headers, ...advice } };
}

/** Returns the status of a refusal that the manifest gives for this operation (`error_status`). */
function statusOf(asked: AskedFor | undefined): number | undefined {
  if (asked?.platform === undefined) return undefined;
  const [path = ''] = asked.endpoint.split('?', 1);
  return entryFor(asked.platform.rules.errorStatus, { method: asked.method as Method, path })?.status;
}

const MAX_IN_HEADER = 500;

/** Replaces the characters that a header cannot carry, and truncates. */
const inHeader = (text: string): string => text.replaceAll(/[^\x20-\x7e]+/g, "'").slice(0, MAX_IN_HEADER);

/** Converts the outcome of a call whose answer was not begun, or that has none. */
export function outcomeRefusal(context: RefusalContext, outcome: StreamOutcome): RawRefusal {
  const { auditId } = outcome.call;
  const refuse = (code: ErrorCode, detail: string): RawRefusal => ({
    status: ERRORS[code],
    code,
    detail,
    headers: { 'X-Svc-Audit-Id': auditId },
    extra: { audit_id: auditId },
  });
  const withheld = (cause: BlockedCause): RawRefusal => {
    const refusal = refuse('upstream_response_blocked', sentence(BLOCKED_DETAILS[cause]));
    if (platformEffectOf(outcome) === 'none') return refusal;
    return { ...refusal, status: UNREPEATED, detail: `${refusal.detail} The call was made; do not repeat it.` };
  };
  switch (outcome.kind) {
    case 'cannot_hold':
      return refuse('approval_required_unsupported', TOO_LARGE_TO_HOLD);
    case 'response_blocked':
      return withheld(outcome.cause);
    case 'streamed':
      return outcome.ended === 'credential_found' || outcome.ended === 'not_masked'
        ? withheld(outcome.ended)
        : unrepeated(
            refuse(
              'upstream_unreachable',
              'The response of the platform broke off before any of it could be forwarded.',
            ),
            outcome,
          );
    default:
      return unrepeated(
        fromReply(outcomeReply(context, outcome), auditId, callerOf(context), (code) =>
          afterRefusal(code, callerOf(context), wantedOf(outcome)),
        ),
        outcome,
      );
  }
}

/**
 * A call that may have been made, and that would be made a second time if its client repeated it, has a status after which no client does. PUT and DELETE
 * are idempotent (RFC 9110 section 9.2.2): their 502 lets clients repeat a part of an upload whose connection was lost. A body that the broker cut is no
 * complete call.
 */
function unrepeated(refusal: RawRefusal, outcome: StreamOutcome): RawRefusal {
  if (refusal.code !== 'upstream_unreachable' || platformEffectOf(outcome) === 'none') return refusal;
  const isCut = outcome.kind === 'unreachable' && CUT.includes(outcome.code);
  const isIdempotent = !['POST', 'PATCH'].includes(outcome.call.asked.method ?? '');
  return isCut || isIdempotent ? refusal : { ...refusal, status: UNREPEATED };
}

const CUT: readonly string[] = BODY_CUT;

const TOO_LARGE_TO_HOLD =
  'This call needs an approval, but a body of more than 1 MiB or of unknown length cannot be stored until the decision. Send a smaller body with a Content-Length, or ask an owner for a policy that allows the call.';

/** Converts a thrown refusal. */
export const thrownRefusal = ({ status, code, message, headers, extra }: Refusal): RawRefusal => ({
  status,
  code,
  detail: message,
  headers,
  extra,
  retry: status === 429 || status === 503,
});

/** Returns what the call lacked, if owners can grant it. */
const wantedOf = (outcome: StreamOutcome): Wanted | undefined =>
  outcome.kind === 'denied' && isGrantable(outcome.verdict)
    ? { platform: outcome.call.asked.platform, scope: outcome.call.asked.scope }
    : undefined;

/** Converts an answer of `POST /v1/actions`, and adds what this caller can do next. */
function fromReply(
  { status, body, headers }: Reply,
  auditId: string,
  caller: Caller,
  next: (code: string) => string | undefined,
): RawRefusal {
  const { error, reason, detail, message, halt, ...others } = JSON.parse(String(body)) as Record<string, unknown>;
  const instructions = (halt as { instructions?: string } | undefined)?.instructions;
  const code = error === 'Permission denied' ? String(reason) : String(error);
  const members = Object.fromEntries(
    Object.entries(others).filter(([name]) => /_url$|^(?:violating|constraint|limit)$/.test(name)),
  );
  // Where a person can consent, the message says how, whatever the detail is.
  const how = 'consent_url' in members && detail !== undefined ? message : undefined;
  // The error form of a platform has no `violating`.
  const which = code === 'recipient_not_allowed' ? listed(members.violating) : undefined;
  const said = [detail ?? message, which, how, instructions, next(code)].filter((one) => one !== undefined).join(' ');
  return {
    status,
    code,
    detail: withAddresses(said, members, caller),
    headers: { ...headers, 'X-Svc-Audit-Id': auditId },
    extra: { audit_id: auditId, ...(typeof reason === 'string' && { reason }), ...members },
    retry: status === 429 || status === 503,
  };
}

const MAX_LISTED = 5;

/** Returns a sentence with the first names; undefined when there are none. */
function listed(names: unknown): string | undefined {
  if (!Array.isArray(names) || names.length === 0) return undefined;
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return `They are: ${names.slice(0, MAX_LISTED).join(', ')}${more}.`;
}

/** Replaces the names of members by the addresses in them: the error form of a platform has no such members. */
function withAddresses(text: string, members: Readonly<Record<string, unknown>>, { kind, baseUrl }: Caller): string {
  // The sidecar of a run serves this route, and signs for its command.
  const inRun = (path: string) => kind === 'run' && path.startsWith('/v1/access-request/');
  const addressOf = (value: string) =>
    inRun(value) ? `${value} of AGENT_BROKER_RUN_URL` : `${value.startsWith('/') ? baseUrl : ''}${value}`;
  const addresses = Object.entries(members).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, addressOf(value)] as const] : [],
  );
  return addresses.reduce((said, [name, address]) => said.replaceAll(name, () => address), text);
}
