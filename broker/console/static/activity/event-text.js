// Sentences for audit events: what owners and the broker did.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { visibleLine } from '../visible.js';

/** @type {Partial<Record<string, string>>} */
export const EVENT_TEXTS = {
  agent_suspended: 'was suspended',
  agent_resumed: 'was resumed',
  agent_revoked: 'was revoked',
  agent_deleted: 'was deleted',
  breaker_opened: 'is refused for a while: a circuit breaker opened',
  breaker_closed: 'is accepted again: a circuit breaker closed',
  secret_authorized: 'may be given a secret',
  secret_bound: 'was given a secret',
  policy_assigned: 'was given another policy',
  agents_handed_over: 'handed over to another owner',
  agent_labelled: 'was given other labels',
  agent_created: 'was created, without a key',
  workload_set: 'was given a workload',
  workload_removed: 'no longer has a workload',
  demo_started: 'was used for a demo',
  governance_applied: 'a governance file was applied',
  access_request_approved: 'was granted the requested access',
  access_request_denied: 'was denied the requested access',
  registration_approved: 'was approved as an agent',
  registration_rejected: 'was rejected',
  child_issued: 'was created as a child',
  agent_expired: 'expired',
  connection_tested: 'connection tested',
  mcp_client_allowed: 'was connected to an MCP client',
  mcp_client_revoked: 'was disconnected from an MCP client',
  registration_key_claimed: 'collected its key',
  bootstrap_token_made: 'got a token to bring a key',
  agent_bound: 'brought its key',
  agent_invited: 'came by an invite',
  approval_given: 'had a held call approved by one of several people',
  approval_corrected: 'had a held call corrected',
  button_refused: 'was not decided: the person who pressed a button in a chat is not allowed to, or it was too late',
  mcp_tools_found: 'An MCP server listed its tools',
  mcp_tools_changed: 'An MCP server changed its tools: review them',
  mcp_tool_accepted: 'accepted a tool',
};

export const readable = (/** @type {string} */ code) => code.replaceAll('_', ' ');

/** Events whose detail says whom or what they are about; of others it is the owner's own text, or says more than a line needs. */
const ABOUT_DETAIL = new Set([
  'owner_added',
  'owner_changed',
  'owner_removed',
  'owner_link_made',
  'owner_sessions_ended',
  'agents_handed_over',
  'governance_applied',
]);

/** Describes an owner's action, to follow the name of the agent that it concerned, if any. @param {Pick<AuditRow, 'reason' | 'detail'>} row */
export function eventText({ reason, detail }) {
  const text = EVENT_TEXTS[reason] ?? readable(reason);
  return detail && ABOUT_DETAIL.has(reason) ? `${text}: ${visibleLine(detail)}` : text;
}
