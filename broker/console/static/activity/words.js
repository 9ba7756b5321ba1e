// What is on record, in words.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
/** @typedef {{ kind: string, words: string }} Badge */

/** @type {Record<NonNullable<AuditRow['result']>, Badge>} */
export const RESULTS = {
  allowed: { kind: 'good', words: 'Allowed' },
  held: { kind: 'wait', words: 'Held' },
  denied: { kind: 'bad', words: 'Denied' },
  blocked: { kind: 'bad', words: 'Blocked' },
  errored: { kind: 'bad', words: 'Failed' },
};

const UNDER_WAY = { kind: 'wait', words: 'Under way' };
/** @type {Partial<Record<string, Badge>>} */
const EVENTS = {
  approval_approved: { kind: 'good', words: 'Approved' },
  approval_denied: { kind: 'bad', words: 'Denied' },
  access_request_approved: { kind: 'good', words: 'Granted' },
  access_request_denied: { kind: 'bad', words: 'Denied' },
  registration_approved: { kind: 'good', words: 'Let in' },
  registration_rejected: { kind: 'bad', words: 'Turned away' },
  mcp_client_allowed: { kind: 'good', words: 'Let in' },
  mcp_client_revoked: { kind: 'bad', words: 'Put out' },
  mcp_tools_changed: { kind: 'wait', words: 'Held back' },
  mcp_tool_accepted: { kind: 'good', words: 'Accepted' },
};

/**
 * A row's result as a badge.
 *
 * @param {AuditRow} row
 */
export function resultOf({ kind, state, result, reason }) {
  if (kind === 'event') return EVENTS[reason] ?? { kind: '', words: 'Event' };
  if (result) return RESULTS[result];
  return state === 'intent' ? UNDER_WAY : { kind: '', words: 'Unknown' };
}

/** @type {Partial<Record<string, string>>} */
const REASONS = {
  approved: 'a rule allows it',
  scope_not_granted: 'the scope is not granted',
  agent_suspended: 'the agent is suspended',
  agent_revoked: 'the agent is revoked',
  platform_suspended: 'the platform is switched off',
  no_permission_record: 'no grant for this platform',
  circuit_breaker_open: 'a breaker is open',
  no_policy_assigned: 'the agent has no policy',
  denied_by_guardrail: 'a guardrail denies it',
  denied_by_policy: 'its policy denies it',
  endpoint_scope_mismatch: 'the scope does not cover this endpoint',
  grant_expired: 'the grant is over',
  recipient_not_allowed: 'the recipient is not allowed',
  repo_not_allowed: 'the repository is not allowed',
  agent_inactive: 'the agent is not active yet',
  approval_required_by_policy: 'its policy asks a person',
  approval_required_by_guardrail: 'a guardrail asks a person',
  approval_required_by_grant: 'its grant asks a person',
  upstream_unreachable: 'the platform could not be reached',
  upstream_response_blocked: 'the answer was withheld',
  upstream_auth_failed: 'the platform refused the credential',
  upstream_not_found: 'the platform has no such repository',
  approval_required_unsupported_for_git: 'a person would have to approve it, and git cannot wait',
  git_request_too_large: 'the request is too large',
  request_cut: 'the request broke off before it was whole',
  advertised: 'a rule allows it: git asked for refs',
  probe: 'a rule allows it: git probed before a push',
  platform_reauth_needed: 'the platform refused the credential',
};

/** @type {Partial<Record<string, string>>} */
const DEEDS = {
  agent_suspended: 'was suspended',
  agent_resumed: 'was resumed',
  agent_revoked: 'was revoked',
  agent_deleted: 'was deleted',
  breaker_opened: 'is refused for a while: a breaker opened',
  breaker_closed: 'goes on: a breaker closed',
  secret_authorized: 'may be given a secret',
  secret_bound: 'was given a secret',
  agent_policy_assigned: 'was given another policy',
  access_request_approved: 'was granted what it asked for',
  access_request_denied: 'was denied what it asked for',
  registration_approved: 'was let in',
  mcp_client_allowed: 'was given to an MCP client to act as',
  mcp_client_revoked: 'was taken from an MCP client',
  registration_key_claimed: 'collected its key',
  bootstrap_token_made: 'may bring a key',
  agent_bound: 'brought its key',
  agent_invited: 'came by an invite',
  mcp_tools_found: 'An MCP server told of its tools',
  mcp_tools_changed: 'An MCP server offers other tools: look at them',
  mcp_tool_accepted: 'accepted a tool',
};

const readable = (/** @type {string} */ code) => code.replaceAll('_', ' ');

/** Why a call was answered as it was; a code that has no words as it is, readable. */
export const reasonInWords = (/** @type {string} */ reason) => REASONS[reason] ?? readable(reason);

/** What an owner did, after the name of whom it was done to, if it was an agent. */
export const deedInWords = (/** @type {string} */ reason) => DEEDS[reason] ?? readable(reason);
