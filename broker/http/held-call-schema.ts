/** Held calls as owners read them, as schemas: what held-call.ts makes. */
import { z } from 'zod';
import { AGENT_STATUSES, METHODS } from '../policy/facts.ts';

const moment = z.iso.datetime().nullable();

export const HeldCallStated = z
  .object({
    approval_id: z.guid(),
    status: z.enum(['pending', 'approved', 'denied', 'expired']),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    expires_in_seconds: z.int().nullable().describe('null: nobody can decide any more'),
    decided_at: moment,
    decided_by: z.guid().nullable(),
    how: z.enum(['console', 'api', 'passkey']).nullable(),
    note: z.string().nullable().describe('what the owner says to the agent'),
    executed_at: moment,
    execution_error: z.string().nullable(),
    result_summary: z.string().nullable().describe('status, type and size of what the platform answered'),
    audit_ids: z.object({ held: z.guid(), decided: z.guid().nullable(), replayed: z.guid().nullable() }),
  })
  .meta({ id: 'HeldCallStated' });

const AgentNamed = z.object({
  id: z.guid(),
  agent_id: z.string(),
  name: z.string(),
  status: z.enum(AGENT_STATUSES),
  parent: z.object({ agent_id: z.string(), name: z.string() }).nullable().describe('whose child it is, if any'),
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
  approve_url: z.url().describe('where a person decides on it'),
  agent: AgentNamed,
  platform: z.string(),
  connection: z.object({ connection_id: z.guid(), label: z.string().nullable() }).nullable(),
  method: z.enum(METHODS),
  path: z.string(),
  scope: z.string(),
  reason: z.string().nullable().describe("the agent's own words"),
  caller: Person,
  decided_by_email: z.string().nullable(),
  held_because: z.object({
    reason: z.string(),
    detail: z.string().nullable(),
    rules: z
      .array(
        z.looseObject({
          source: z.string().describe('policy, or guardrail'),
          name: z.string(),
          effect: z.string(),
          error: z.string().optional().describe('how its condition failed'),
        }),
      )
      .describe('the rules that matched'),
  }),
  request_hash: z.string(),
}).meta({ id: 'HeldCallSummary' });

export const HeldCallOpened = HeldCallSummary.extend({
  agent: AgentNamed.extend({ owned_by_me: z.boolean() }),
  request: z
    .object({
      method: z.enum(METHODS),
      endpoint: z.string().describe('with its query'),
      body: z.unknown(),
      headers: z.record(z.string(), z.string()),
      recipients: z.array(z.string()),
      caller: Person,
    })
    .nullable()
    .describe('exactly what would be sent; null: it was altered in the store'),
}).meta({ id: 'HeldCall' });
