/** The owners' view of an access request. */

import { z } from 'zod';
import { hasEnded } from '../../approvals/asking-agent.ts';
import { statusAt } from '../../audit/approval-state.ts';
import type { NameOfPlatform } from '../../facts/platform-names.ts';
import { AGENT_STATUSES, type Instant } from '../../policy/facts.ts';
import type { ShownRequest } from '../../store/access-requests.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import { ParentNamed, parentNamed } from '../agent-parent.ts';
import { instant } from '../reply.ts';
import { Grant, NextSteps } from './grant.ts';

export const REQUEST_STATUSES = ['pending', 'approved', 'denied', 'expired'] as const;

export const REASON_CODES = ['not_connected', 'not_granted', 'grant_expired', 'needs_consent', 'scope_denied'] as const;

export const AccessRequest = z
  .object({
    request_id: z.guid(),
    status: z.enum(REQUEST_STATUSES),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    expires_in_seconds: z.int().nullable().describe('null: it is no longer pending'),
    agent: z.object({
      id: z.guid(),
      agent_id: z.string(),
      name: z.string(),
      status: z.enum(AGENT_STATUSES),
      ended: z.boolean().describe('whether it or its parent was revoked: what was pending ended then'),
      parent: ParentNamed,
    }),
    platform: z.string(),
    platform_name: z.string().describe('its display name; its id if it has none or was removed'),
    scope: z.string().nullable().describe('null: the platform as a whole'),
    reason_code: z.enum(REASON_CODES).describe('why the agent lacked it at the time of the request'),
    reason: z.string().nullable().describe('the words of the agent, which nobody has verified'),
    decided_at: z.iso.datetime().nullable(),
    decided_by: z.guid().nullable(),
    decided_by_email: z.string().nullable(),
    note: z.string().nullable().describe('what the agent was told'),
    granted: z.array(z.string()).nullable().describe('the scopes that an approval granted'),
    audit_id: z.guid().nullable().describe('the event of the decision'),
  })
  .meta({ id: 'AccessRequest' });

export const WholeAccessRequest = AccessRequest.extend({
  platform_scopes: z.array(z.string()).describe('what the platform has'),
  connections: z.array(z.object({ connection_id: z.guid(), label: z.string(), default: z.boolean() })),
  grants: z.array(Grant).describe('what the agent is granted on the platform now'),
}).meta({ id: 'WholeAccessRequest' });

export const DecidedAccessRequest = AccessRequest.extend({
  grant: Grant.optional().describe('of an approval: the grant as it is now'),
  next_steps: NextSteps.optional(),
}).meta({ id: 'DecidedAccessRequest' });

/** Builds the view. `nameOf`: returns the name of the platform. */
export function accessRequestShown(
  request: ShownRequest,
  nameOf: NameOfPlatform,
  now: Instant,
): z.output<typeof AccessRequest> {
  const status = statusAt(request, now);
  return {
    request_id: request.id,
    status,
    created_at: new Date(request.created_at).toISOString(),
    expires_at: new Date(request.expires_at).toISOString(),
    expires_in_seconds: status === 'pending' ? Math.ceil((request.expires_at - now) / 1000) : null,
    agent: {
      id: request.agent_id,
      agent_id: request.agent_public_id,
      name: request.agent_name,
      status: request.agent_status,
      ended: hasEnded(request),
      parent: parentNamed(request),
    },
    platform: request.platform_id,
    platform_name: nameOf(request.platform_id),
    scope: request.scope === '' ? null : request.scope,
    reason_code: request.reason_code,
    reason: request.reason,
    decided_at: instant(request.decided_at),
    decided_by: request.decided_by,
    decided_by_email: request.decided_by_email,
    note: request.note,
    granted: request.granted === null ? null : readStored(Texts, request.granted, `granted scopes of ${request.id}`),
    audit_id: request.decision_audit_id,
  };
}
