/** Schemas of held calls as owners read them; held-call.ts builds the values. */

import { z } from 'zod';
import { AGENT_STATUSES, METHODS } from '../policy/facts.ts';
import { ParentNamed } from './agent-parent.ts';
import { MatchedRules } from './audit-row.ts';
import { SentenceShown } from './sentence.ts';
import { OfferShown } from './standing.ts';

const moment = z.iso.datetime().nullable();

export const HeldCallStated = z
  .object({
    approval_id: z.guid(),
    status: z.enum(['pending', 'approved', 'denied', 'expired']),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    expires_in_seconds: z.int().nullable().describe('null: it can no longer be decided'),
    decided_at: moment,
    decided_by: z.guid().nullable(),
    how: z.enum(['console', 'api', 'passkey', 'channel']).nullable(),
    note: z.string().nullable().describe('the note of the owner to the agent'),
    approvers: z
      .object({ needed: z.int(), given: z.int() })
      .nullable()
      .describe('how many different people have to approve, and how many have; null: one decides'),
    executed_at: moment,
    execution_error: z.string().nullable(),
    result_summary: z
      .string()
      .nullable()
      .describe(
        'status, type and size of what the platform answered, and whether its body tells of an error though its status does not',
      ),
    audit_ids: z.object({ held: z.guid(), decided: z.guid().nullable(), replayed: z.guid().nullable() }),
  })
  .meta({ id: 'HeldCallStated' });

const platform_message = z
  .string()
  .nullable()
  .describe('what the platform said when it refused the call, as far as it said so; at most 300 characters');

/** A held call as returned to the owner who has just decided it. */
export const HeldCallDecided = HeldCallStated.extend({
  platform_message,
  standing_approval: z.guid().nullable().describe('the standing approval that was made with the approval'),
  waiting: z
    .object({ approvals: z.int(), next: z.guid().nullable().describe('the one that has waited longest') })
    .nullable()
    .describe('held calls of the organisation that still wait; null: the store could not be read'),
}).meta({ id: 'HeldCallDecided' });

const AgentNamed = z.object({
  id: z.guid(),
  agent_id: z.string(),
  name: z.string(),
  status: z.enum(AGENT_STATUSES),
  parent: ParentNamed,
  suspended: z
    .boolean()
    .describe(
      'whether it, its parent, or all agents are stopped: an approved call is then not made, unless the agent is resumed before',
    ),
  ended: z.boolean().describe('whether it or its parent was revoked: what was pending ended then'),
});

const Person = z
  .object({
    identity: z.enum(['verified', 'asserted']),
    named_by: z
      .string()
      .nullable()
      .describe('the issuer of the assertion, or the source in whose name the agent says it'),
    person_id: z.guid().nullable().describe('random'),
  })
  .nullable()
  .describe('the person for whom the call is, on a platform with one token per person; never who it is');

export const HeldCallSummary = HeldCallStated.extend({
  sentence: SentenceShown.describe('what the call does, as it was said when the call was held'),
  approve_url: z.url().describe('where a person decides on it'),
  agent: AgentNamed,
  platform: z.string(),
  platform_name: z.string().describe('its display name; its id if it has none or was removed'),
  platform_suspended: z
    .boolean()
    .describe('whether the platform is suspended: an approved call is then not made, unless it is resumed before'),
  connection: z.object({ connection_id: z.guid(), label: z.string().nullable() }).nullable(),
  method: z.enum(METHODS),
  path: z.string(),
  scope: z.string(),
  reason: z.string().nullable().describe("the agent's own words"),
  caller: Person,
  decided_by_email: z.string().nullable(),
  approved_before: z
    .array(
      z.object({
        approved_by: z.guid(),
        approved_by_email: z.string().nullable(),
        approved_at: z.iso.datetime(),
        how: z.enum(['console', 'api', 'passkey', 'channel']),
      }),
    )
    .describe('who approved before the one who decided, or so far, where several people have to approve'),
  held_because: z.object({
    reason: z.string(),
    detail: z.string().nullable(),
    rules: MatchedRules,
  }),
  request_hash: z.string(),
  corrected: z
    .object({ at: z.iso.datetime(), by_email: z.string().nullable() })
    .nullable()
    .describe('who last corrected the request; null: it is what the agent sent'),
}).meta({ id: 'HeldCallSummary' });

export const HeldCallOpened = HeldCallSummary.extend({
  agent: AgentNamed.extend({ owned_by_me: z.boolean() }),
  request: z
    .object({
      method: z.enum(METHODS),
      endpoint: z.string().describe('with its query'),
      body: z.unknown(),
      upload: z
        .object({ media_type: z.string().nullable(), bytes: z.int(), sha256: z.string() })
        .nullable()
        .describe('in place of a body that is no text: what it is'),
      headers: z.record(z.string(), z.string()),
      recipients: z.array(z.string()),
      caller: Person,
    })
    .nullable()
    .describe('exactly what would be sent; null: it was altered in the store'),
  asked: z
    .object({ endpoint: z.string(), body: z.unknown() })
    .nullable()
    .describe(
      'the original request, if it was corrected; null: it was not corrected, or the original was altered in the store',
    ),
  correctable: z
    .boolean()
    .describe('whether it can be corrected: it waits, and its body is an object of JSON, or none'),
  connection_note: z
    .string()
    .nullable()
    .describe(
      'what has become of its connection since it was held, or of the token of the person for whom it is made, where an approval has another effect for that reason, as a sentence: the connection or the token was replaced, or the call would not be made',
    ),
  platform_message,
  standing: OfferShown,
}).meta({ id: 'HeldCall' });
