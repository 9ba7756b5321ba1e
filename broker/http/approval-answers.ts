/** Schemas of an agent's own held calls (specification, Approval; Pending actions). */
import { z } from 'zod';

const moment = z.iso.datetime();

export const Approval = z
  .object({
    approval_id: z.guid(),
    status: z.enum(['pending', 'approved', 'denied', 'expired']),
    created_at: moment,
    expires_at: moment.nullable(),
    executed_at: moment.nullable(),
    approval_url: z.url().describe('the page on which an owner decides'),
    sentence: z.string().describe('what the call does, as shown to the person who decides'),
    result: z
      .object({
        status: z.int(),
        data: z.unknown(),
        headers: z.record(z.string(), z.string()).optional().describe('as `_meta.upstream_headers` of a call'),
        content_type: z.string().optional().describe('the media type of the answer, unless it is application/json'),
        encoding: z.literal('base64').optional().describe('of bytes'),
        location: z.string().optional().describe('as `_meta.upstream_location` of a call'),
        followed: z.string().optional().describe('as `_meta.upstream_followed` of a call'),
        redacted: z.literal(true).optional().describe('as `_meta.redacted` of a call'),
        masked: z
          .object({ count: z.int(), rules: z.array(z.string()) })
          .optional()
          .describe('what rules masked in it, as `_meta.masked` of a call'),
        truncated: z.literal(true).optional().describe('`data` is the beginning, of so many `bytes`'),
        bytes: z.int().optional(),
      })
      .optional()
      .describe("the platform's answer, once the approved call was made"),
    execution_error: z.string().optional().describe('why the approved call was not made, or what failed'),
    approvers: z
      .object({ needed: z.int(), given: z.int() })
      .optional()
      .describe('for a call that several people have to approve: how many, and how many have'),
    corrected: z
      .object({
        at: moment,
        endpoint: z.string(),
        data: z.unknown().describe('null: none'),
      })
      .optional()
      .describe(
        'the call as an owner corrected it: this is what is decided on and made, instead of the original request',
      ),
    note: z.string().optional().describe('the note to the agent from the person who decided'),
    audit_id: z.guid().describe('the audit row of the held call, and once it was approved, of the call that is made'),
  })
  .meta({ id: 'Approval' });

const item = { approval_id: z.guid(), platform_id: z.string(), scope: z.string(), created_at: moment };

export const PendingActions = z
  .object({
    pending: z.array(z.object({ ...item, expires_at: moment.nullable() })),
    recently_completed: z
      .array(
        z.object({
          ...item,
          status: z.enum(['approved', 'denied', 'expired']),
          executed_at: moment.nullish(),
          result_summary: z.string().nullish(),
          execution_error: z.string().nullish(),
        }),
      )
      .describe('calls that were decided or expired within 24 hours'),
  })
  .meta({ id: 'PendingActions' });
