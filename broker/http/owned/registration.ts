/** The owners' view of registrations, found by id or by token. */

import { z } from 'zod';
import type { ReadRegistration } from '../../admin/registrations/read-registration.ts';
import { siteOf } from '../../auth/client-address.ts';
import type { Instant } from '../../policy/facts.ts';
import { AgentName, REGISTRATION_STATUSES, ScopesOn, ScopesOnPlatforms } from '../registration-request.ts';
import { instant } from '../reply.ts';

export const Registration = z
  .object({
    id: z.guid(),
    status: z.enum(REGISTRATION_STATUSES),
    agent_id: z.string().describe('of the agent that an approval makes of it'),
    agent_name: z.string().describe("the agent's own words, like the description"),
    agent_description: z.string().nullable(),
    owner_id: z.guid().describe('the owner named in the registration, who is responsible for the agent'),
    owner_email: z.string().nullable(),
    requested_scopes: ScopesOn,
    granted: ScopesOn.nullable().describe('of an approval: those that were granted'),
    source: z.string().describe('the address that it came from'),
    network: z
      .string()
      .describe('of an IPv6 address its /48, else the address; all from one source can be rejected together'),
    may_decide: z.boolean().describe('whether the requester of this response may decide it'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().describe('until then it can be decided'),
    expires_in_seconds: z.int().nullable().describe('null: it is no longer pending'),
    decided_at: z.iso.datetime().nullable(),
    decided_by: z.guid().nullable(),
    decided_by_email: z.string().nullable(),
    claim_until: z.iso.datetime().nullable().describe('until then the agent can collect its key'),
    claimed_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Registration' });

export const ApprovedRegistration = Registration.extend({
  dropped: ScopesOn.describe('scopes that no platform of the organisation has, and that were not granted'),
}).meta({ id: 'ApprovedRegistration' });

/** Includes what an approval would create now, for the deciding owner. */
export const WholeRegistration = Registration.extend({
  unknown_scopes: ScopesOn.describe('requested scopes that no platform of the organisation has'),
  policy: z
    .object({ id: z.guid(), name: z.string(), version: z.int() })
    .nullable()
    .describe('the one that the agent would be under; null: there is no default one, and every call would be denied'),
  namesake: z.string().nullable().describe('the agent id of whom is called so already: approve with another name'),
}).meta({ id: 'WholeRegistration' });

export const registrationShown = (one: ReadRegistration, now: Instant): z.output<typeof Registration> => ({
  id: one.id,
  status: one.status,
  agent_id: one.agent_id,
  agent_name: one.agent_name,
  agent_description: one.agent_description,
  owner_id: one.owner_id,
  owner_email: one.owner_email,
  requested_scopes: one.requested_scopes,
  granted: one.granted,
  source: one.source,
  network: siteOf(one.source),
  may_decide: one.mayDecide,
  created_at: new Date(one.created_at).toISOString(),
  expires_at: new Date(one.expires_at).toISOString(),
  expires_in_seconds: one.status === 'pending' ? Math.ceil((one.expires_at - now) / 1000) : null,
  decided_at: instant(one.decided_at),
  decided_by: one.decided_by,
  decided_by_email: one.decided_by_email,
  claim_until: instant(one.claim_until),
  claimed_at: instant(one.claimed_at),
});

export const ApprovingBody = z.strictObject({
  scopes: ScopesOnPlatforms.optional().describe('a subset of the requested ones; all of them when omitted'),
  policy: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('its id or its name; the default one when left out. Another one is chosen by admins'),
  name: AgentName.optional().describe('the name of the agent, if not the requested one'),
});

/** Errors of both ways to decide. */
export const DECISION_ERRORS = [
  'invalid_request',
  'forbidden',
  'not_found',
  'already_decided',
  'conflict',
  'request_expired',
  'audit_unavailable',
] as const;
