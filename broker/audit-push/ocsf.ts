/**
 * Audit rows as events of the Open Cybersecurity Schema Framework: OCSF 1.9.0, class API Activity (6003), and for owners who sign in and out
 * Authentication (3002), with the profiles `ai_operation`, `record_integrity` and `security_control`. Data without a place in the class goes
 * to `unmapped`, so that an event has all data of its row.
 */
import { type AuditFlags, shownFlags } from '../audit/audit-flags.ts';
import { receiptOf } from '../audit/receipt.ts';
import type { PlacedRow } from '../receipt-log/log-rows.ts';
import type { AuditRow } from '../store/audit.ts';
import { membersOf, openMembers, openStored } from '../store/open-json.ts';
import {
  actorOf,
  attestationOf,
  type Json,
  known,
  type Named,
  type OcsfSource,
  productOf,
  textOf,
} from './ocsf-parts.ts';
import { authentication, SIGN_INS } from './ocsf-sign-ins.ts';

const VERSION = '1.9.0';
const PROFILES = ['ai_operation', 'record_integrity', 'security_control'];

const READ: Named = [2, 'Read'];
const UPDATE: Named = [3, 'Update'];
const BY_METHOD: Readonly<Record<string, Named>> = {
  GET: READ,
  POST: [1, 'Create'],
  PUT: UPDATE,
  PATCH: UPDATE,
  DELETE: [4, 'Delete'],
};
const BY_RESULT: Readonly<Record<string, { status: Named; action: Named; disposition: Named }>> = {
  allowed: { status: [1, 'Success'], action: [1, 'Allowed'], disposition: [1, 'Allowed'] },
  held: { status: [99, 'Held'], action: [99, 'Held'], disposition: [14, 'Delayed'] },
  denied: { status: [2, 'Failure'], action: [2, 'Denied'], disposition: [2, 'Blocked'] },
  blocked: { status: [2, 'Failure'], action: [2, 'Denied'], disposition: [2, 'Blocked'] },
  errored: { status: [2, 'Failure'], action: [1, 'Allowed'], disposition: [27, 'Error'] },
};
/** Events that a person should review. */
const NEEDS_REVIEW =
  /^(?:passkey_counter_regression|passkey_counter_restored|button_refused|breaker_opened|mcp_tools_changed|store_restored|log_key_announced|all_agents_stopped|outcome_unknown)$/;

/** Returns the activity. For an event it is the reason, such as `policy_created`. */
function activityOf({ kind, method, reason }: AuditRow): Named {
  if (kind === 'action') return BY_METHOD[method ?? ''] ?? [99, method ?? 'call'];
  if (/_(?:created|added|issued|made|enrolled|connected|bound)$/.test(reason)) return [1, 'Create'];
  if (/_(?:changed|replaced|assigned|renamed|rotated)$/.test(reason)) return UPDATE;
  if (/_(?:removed|revoked|deleted|disconnected)$/.test(reason)) return [4, 'Delete'];
  return [99, reason];
}

function severityOf({ result, reason }: AuditRow): Named {
  if (NEEDS_REVIEW.test(reason)) return [3, 'Medium'];
  return result === 'denied' || result === 'blocked' || result === 'errored' ? [2, 'Low'] : [1, 'Informational'];
}

/** Returns the authority beyond the agent's own: an approval, a standing approval, or the parent of a child agent. */
function delegationOf(row: AuditRow, flags: AuditFlags, issuer: string): Json | undefined {
  const standing = textOf(flags.standing_approval?.id);
  const approval = flags.approval === undefined ? standing : (row.approval_id ?? undefined);
  const parent = textOf(flags.parent);
  const uid = approval ?? (parent === undefined ? undefined : (row.agent_public_id ?? undefined));
  if (row.kind !== 'action' || uid === undefined) return undefined;
  const decided = Date.parse(flags.approval?.decided_at ?? '');
  return known({
    uid,
    parent_uid: parent,
    issuer_uid: issuer,
    created_time: Number.isNaN(decided) ? undefined : decided,
  });
}

function policyOf(decision: Json): Json | undefined {
  const policy = membersOf(decision.policy);
  if (policy.id === undefined) return undefined;
  return known({ uid: policy.id, name: policy.name, version: String(policy.version), is_applied: true });
}

/** Returns the resources that were acted on. */
function resourcesOf({ kind, agent_id, agent_public_id, platform_id, connection_id }: AuditRow): Json[] {
  const agent = kind === 'event' && agent_id !== null && { uid: agent_id, name: agent_public_id, type: 'agent' };
  const platform = platform_id !== null && { name: platform_id, type: 'platform' };
  const connection = connection_id !== null && { uid: connection_id, type: 'connection' };
  return [agent, platform, connection].flatMap((one) => (one ? [known({ ...one, role_id: 1, role: 'Target' })] : []));
}

/** Builds the event of a row. Throws when the receipt has a format that this version does not know. */
export function ocsfEvent({ index, row }: PlacedRow, source: OcsfSource): Json {
  const flags = shownFlags(row);
  const decision = openMembers(row.decision);
  const signing = row.kind === 'event' ? SIGN_INS.get(row.reason) : undefined;
  const [severity_id, severity] = severityOf(row);
  const outcome = BY_RESULT[row.result ?? ''];
  const [status_id, status] = outcome?.status ?? [1, 'Success'];
  const time = row.finished_at ?? row.created_at;
  const change = flags.change ?? {};
  return known({
    metadata: known({
      version: VERSION,
      profiles: PROFILES,
      product: productOf(source),
      uid: row.id,
      sequence: index,
      correlation_uid: row.correlation_id,
      tenant_uid: row.organisation_id,
      event_code: row.reason,
      log_name: 'audit',
      logged_time: time,
    }),
    ...(signing ? authentication(row, signing, change, source) : apiActivity(row, flags, change, source)),
    severity_id,
    severity,
    time,
    start_time: row.created_at,
    end_time: row.finished_at,
    duration: row.finished_at === null ? undefined : Math.max(0, row.finished_at - row.created_at),
    status_id,
    status,
    status_code: row.reason,
    status_detail: row.detail,
    action_id: outcome?.action[0],
    action: outcome?.action[1],
    disposition_id: outcome?.disposition[0],
    disposition: outcome?.disposition[1],
    policy: policyOf(decision),
    attestation_list: [attestationOf(row, source)],
    unmapped: known({
      kind: row.kind,
      result: row.result,
      scope: row.scope,
      connection_id: row.connection_id,
      approval_id: row.approval_id,
      agent_reason: row.agent_reason,
      violating: row.violating === null ? undefined : openStored(row.violating),
      decision: row.decision === null ? undefined : decision,
      flags: row.flags === null ? undefined : openMembers(row.flags),
      pii: row.pii === null ? undefined : openMembers(row.pii),
      receipt_kid: row.receipt_kid,
      receipt: receiptOf(row),
    }),
  });
}

/** Returns the members specific to the class. */
function apiActivity(row: AuditRow, flags: AuditFlags, change: Json, source: OcsfSource): Json {
  const [activity_id, activity_name] = activityOf(row);
  const isCall = row.kind === 'action';
  const path = row.path?.startsWith('/') ? row.path : undefined;
  const agentName = row.agent_public_id ?? row.agent_id ?? undefined;
  const operation = isCall ? [row.method, row.path].filter(Boolean).join(' ') || 'call' : row.reason;
  return {
    category_uid: 6,
    category_name: 'Application Activity',
    class_uid: 6003,
    class_name: 'API Activity',
    activity_id,
    activity_name,
    type_uid: 600_300 + activity_id,
    type_name: `API Activity: ${activity_id === 99 ? 'Other' : activity_name}`,
    message: `${isCall ? `${agentName ?? 'unknown agent'}: ${operation}` : row.reason}${row.platform_id ? ` on ${row.platform_id}` : ''}${row.result ? `, ${row.result} (${row.reason})` : ''}`,
    actor: known({
      user: actorOf(row, change),
      session: row.session_id === null ? undefined : { uid: row.session_id },
    }),
    ai_agent: agentName === undefined ? undefined : known({ uid: row.agent_id, name: row.agent_public_id }),
    delegation: delegationOf(row, flags, source.issuer),
    api: known({
      operation,
      request: { uid: row.correlation_id },
      service: row.platform_id === null ? undefined : { name: row.platform_id },
      response: row.upstream_status === null ? undefined : { code: row.upstream_status },
    }),
    http_request:
      isCall && path !== undefined && BY_METHOD[row.method ?? '']
        ? { http_method: row.method, url: { path } }
        : undefined,
    http_response: row.upstream_status === null ? undefined : { code: row.upstream_status },
    // The source address of a call is not recorded.
    src_endpoint: isCall && agentName !== undefined ? { name: agentName } : { name: 'agent-broker' },
    dst_endpoint: isCall && row.platform_id !== null ? { svc_name: row.platform_id } : undefined,
    resources: resourcesOf(row),
  };
}
