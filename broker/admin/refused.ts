/**
 * Why an operation is not done, in words for whoever asked: routes answer it with this error code. In a transaction, undoes it.
 * `token_used`: the token is unknown, used or expired, or whom it is for takes no key any more; which of these, nobody is told.
 */
export class ChangeRefused extends Error {
  readonly code:
    | 'invalid_request'
    | 'invalid_governance'
    | 'invalid_endpoint'
    | 'invalid_headers'
    | 'invalid_grants'
    | 'no_scopes_after_attenuation'
    | 'child_constraints_looser_than_parent'
    | 'forbidden'
    | 'not_on_plan'
    | 'not_found'
    | 'conflict'
    | 'already_decided'
    | 'registration_pending'
    | 'request_expired'
    | 'request_changed'
    | 'approval_expired'
    | 'token_used'
    | 'agent_has_key'
    | 'key_gone'
    | 'upstream_unreachable'
    | 'credential_unreadable';
  /** Members of the answer beside code and detail. */
  readonly extra: Record<string, unknown>;
  constructor(code: ChangeRefused['code'], detail: string, extra: Record<string, unknown> = {}) {
    super(detail);
    this.code = code;
    this.extra = extra;
  }
}
