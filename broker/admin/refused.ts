/**
 * An operation was refused, with a text for the client; routes answer with this error code. Thrown in a transaction, it rolls back. `token_used`: the
 * token is unknown, used or expired, or its agent accepts no key any more; the answer does not reveal which.
 */
export class ChangeRefused extends Error {
  readonly code:
    | 'invalid_request'
    | 'invalid_governance'
    | 'invalid_endpoint'
    | 'invalid_headers'
    | 'invalid_grants'
    | 'no_scopes_after_attenuation'
    | 'invalid_constraints'
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
  /** Further members of the answer. */
  readonly extra: Record<string, unknown>;
  constructor(code: ChangeRefused['code'], detail: string, extra: Record<string, unknown> = {}) {
    super(detail);
    this.code = code;
    this.extra = extra;
  }
}
