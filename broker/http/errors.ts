/** The catalogue of error codes: the status of each, and the refusal that carries one. */
import { ChangeRefused } from '../admin/refused.ts';
import { AuthorNotAllowed } from '../audit/author-role.ts';
import { StoreUnreviewed } from '../calls/restored-store.ts';

/**
 * The status of `/proxy` for a call that has no answer, where a retry might be a second call: no known client retries after this status. Clients do
 * retry after a 5xx, a 409 (Octokit, Stripe, OpenAI) and a 410 (uploads to Google), and after a 401 or 403 with another token.
 */
export const UNREPEATED = 422;

export const ERRORS = {
  invalid_request: 400,
  invalid_endpoint: 400,
  invalid_headers: 400,
  invalid_id: 400,
  invalid_governance: 400,
  invalid_grants: 400,
  invalid_constraints: 400,
  no_scopes_after_attenuation: 400,
  child_constraints_looser_than_parent: 400,
  verification_failed: 400,
  counter_regression: 400,
  not_on_plan: 402,
  missing_token: 401,
  invalid_token: 401,
  token_expired: 401,
  invalid_signature: 401,
  not_your_row: 401,
  not_your_agent: 401,
  forbidden: 403,
  reauthentication_required: 403,
  approval_required_unsupported_for_git: 403,
  approval_required_unsupported: 403,
  approval_pending: 403,
  approval_denied: 403,
  scope_not_grantable: 403,
  agent_not_active: 403,
  not_found: 404,
  agent_not_found: 404,
  method_not_allowed: 405,
  agent_inactive: 409,
  conflict: 409,
  registration_pending: 409,
  already_decided: 409,
  approval_in_progress: 409,
  approval_failed: UNREPEATED,
  executed_result_not_kept: UNREPEATED,
  executed_outcome_unknown: UNREPEATED,
  passkey_exists: 409,
  no_organisation: 409,
  too_many_children: 409,
  request_changed: 409,
  idempotency_key_reused: 409,
  idempotency_in_progress: 409,
  idempotency_outcome_unknown: 409,
  approval_expired: 410,
  challenge_expired: 410,
  request_expired: 410,
  link_used: 410,
  token_used: 410,
  agent_has_key: 410,
  key_gone: 410,
  payload_too_large: 413,
  git_request_too_large: 413,
  misdirected_request: 421,
  rate_limited: 429,
  too_many_pending_approvals: 429,
  too_many_open_requests: 429,
  too_many_consents: 429,
  too_many_streams: 429,
  too_many_calls: 429,
  internal_error: 500,
  not_implemented: 501,
  upstream_unreachable: 502,
  upstream_response_blocked: 502,
  upstream_auth_failed: 502,
  identity_provider_failed: 502,
  as_signing_unavailable: 503,
  audit_unavailable: 503,
  credential_unreadable: 503,
  store_restored: 503,
  store_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** A refusal that a handler returns, or throws from a nested call. `detail` is for a person and holds no secret. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;
  constructor(
    code: ErrorCode,
    detail: string,
    options: { extra?: Record<string, unknown>; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = 'Refusal';
    this.code = code;
    this.extra = options.extra ?? {};
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return ERRORS[this.code];
  }
}

/** Converts a refusal of an operation into an answer; undefined when `error` is something else. */
export function asRefusal(error: unknown): Refusal | undefined {
  if (error instanceof ChangeRefused) return new Refusal(error.code, error.message, { extra: error.extra });
  if (error instanceof AuthorNotAllowed) return new Refusal('forbidden', error.message);
  if (error instanceof StoreUnreviewed)
    return new Refusal('store_restored', error.message, { headers: { 'Retry-After': '60' } });
  return error instanceof Refusal ? error : undefined;
}
