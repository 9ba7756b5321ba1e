/** Audit rows as owners read them, and the filters of their lists. */
import { z } from 'zod';
import { AGENT_ID_PATTERN, UUID_PATTERN } from '../crypto/ids.ts';
import type { AuditRow } from '../store/audit.ts';
import type { AuditFilter } from '../store/audit-search.ts';
import { openMembers, openStored } from '../store/open-json.ts';
import type { ListedStanding } from '../store/standing-approvals.ts';
import { text } from '../wire/action.ts';
import { RESULTS } from './audit-result.ts';
import { CallHistoryShown } from './call-history.ts';
import { moment } from './query.ts';
import { instant } from './reply.ts';
import { SentenceShown } from './sentence.ts';

const opened = z.record(z.string(), z.unknown()).nullable();

const AuditRowShown = z
  .object({
    organisation_id: z.guid(),
    id: z.guid(),
    state: z.enum(['intent', 'final']).describe('intent: a call that may be under way'),
    kind: z.enum(['action', 'event']).describe("event: an owner's decision or change"),
    created_at: z.iso.datetime(),
    finished_at: z.iso.datetime().nullable(),
    agent_id: z.guid().nullable(),
    agent_public_id: z.string().nullable(),
    platform_id: z.string().nullable(),
    connection_id: z.guid().nullable(),
    scope: z.string().nullable(),
    method: z.string().nullable(),
    path: z.string().nullable().describe('without the query'),
    result: z.enum(RESULTS).nullable(),
    reason: z.string(),
    detail: z.string().nullable(),
    decision: opened.describe('policy, guardrails, the rules that matched, the checks that were made'),
    approval_id: z.guid().nullable(),
    session_id: z.string().nullable(),
    agent_reason: z.string().nullable().describe("the agent's own words"),
    violating: z.array(z.string()).nullable(),
    upstream_status: z.int().nullable(),
    flags: opened.describe(
      'what was dropped or redacted, who approved, what an owner changed; of a push `pushed_refs`: each `ref` with its `action` (create, update, delete), and `push_options`, the names of its options; `refused_refs`: those that the code host refused, and `push_report` (not_asked, missing), if it did not report on all',
    ),
    pii: opened,
    correlation_id: z.string(),
    row_hash: z.string().nullable(),
    receipt_kid: z.string().nullable(),
  })
  .meta({ id: 'AuditRow' });

export const MatchedRules = z
  .array(
    z.looseObject({
      source: z.string().describe('policy, or guardrail'),
      name: z.string(),
      effect: z.string(),
      says: z.string().optional().describe('the effect of a rule that has no name'),
      error: z.string().optional().describe('how its condition failed'),
      after: z.string().optional().describe('audit id of the earlier call because of which it applies'),
    }),
  )
  .describe('the rules that matched');

/** Adds members that are not stored in the row, but computed when it is read. */
export const AuditRowListed = AuditRowShown.extend({
  agent_names: z
    .record(z.string(), z.string())
    .describe('the current names of the agent that it is about and of one that made the change, by agent id'),
  platform_name: z
    .string()
    .nullable()
    .describe(
      'the current name of the platform; its id if it has no name or was removed; null: it concerns no platform',
    ),
  sentence: SentenceShown.nullable().describe(
    'what the call does: of a held call as it was said then, or when it was corrected; else as far as method and path tell, by the manifest of today; null: it is about no call',
  ),
  rules: MatchedRules,
  standing: z
    .object({
      approval_id: z.guid().describe('the held call with which it was given'),
      decided_by: z.guid(),
      decided_by_email: z.string().nullable(),
      how: z.enum(['console', 'api', 'passkey']),
      created_at: z.iso.datetime(),
    })
    .nullable()
    .describe('the standing approval that let the call pass; null: none did, or it was deleted, 90 days after its end'),
  history: CallHistoryShown.nullable()
    .optional()
    .describe(
      'with `history=true`: of a held call each step so far, whichever of them this row is; null: it is no held call',
    ),
}).meta({ id: 'AuditRowListed' });

export const AuditRowWithReceipt = AuditRowShown.extend({
  receipt: z.string().nullable().describe('compact JWS; null of breaker transitions and connect events'),
}).meta({
  id: 'AuditRowWithReceipt',
});

const membersShown = (text: string | null) => (text === null ? null : openMembers(text));

/** Returns an audit row for owners: the hashed columns, JSON columns parsed, and whether the row is signed. */
export const auditRowShown = ({
  instance_id: _instance,
  receipt: _receipt,
  receipt_format: _format,
  receipt_issuer: _issuer,
  ...row
}: AuditRow) => ({
  ...row,
  created_at: instant(row.created_at),
  finished_at: instant(row.finished_at),
  decision: membersShown(row.decision),
  violating: openStored(row.violating),
  flags: membersShown(row.flags),
  pii: membersShown(row.pii),
});

/** Returns who gave the standing approval that let a call pass, and when. */
export const standingShown = (standing: ListedStanding | undefined): z.output<typeof AuditRowListed>['standing'] =>
  standing
    ? {
        approval_id: standing.approval_id,
        decided_by: standing.decided_by,
        decided_by_email: standing.decided_by_email,
        how: standing.decided_how,
        created_at: new Date(standing.created_at).toISOString(),
      }
    : null;

/** Query parameters by which rows are filtered. */
export const AUDIT_FILTER = {
  agent: z
    .string()
    .refine((id) => AGENT_ID_PATTERN.test(id) || UUID_PATTERN.test(id), 'the id of an agent')
    .transform((id) => id.toLowerCase())
    .optional()
    .describe('the uuid of an agent, or its agent id (`agt_…`)'),
  platform: text(64).optional().describe('the id of a platform'),
  kind: z.enum(['action', 'event'], 'action, or event').optional().describe("calls, or owners' decisions and changes"),
  result: z.enum(RESULTS, `one of ${RESULTS.join(', ')}`).optional(),
  reason: z
    .string()
    .regex(/^[a-z_]{1,64}$/, 'a reason, such as denied_by_policy')
    .optional()
    .describe('why a call was answered as it was, or what an owner did'),
  since: moment('rows from this time on').optional(),
  until: moment('before this moment').optional(),
  text: text(200)
    .min(1)
    .optional()
    .describe(
      'part of the path, reason, detail, scope, method, platform, agent (id or name), the reason that the agent gave, or the audit, approval or correlation id, ignoring case; an audit id is found by an index',
    ),
};

type Given = { [Name in keyof typeof AUDIT_FILTER]?: AuditFilter[Name] };

/** Builds the filter from the parameters. */
export const auditFilter = ({ agent, platform, kind, result, reason, since, until, text }: Given): AuditFilter => ({
  agent,
  platform,
  kind,
  result,
  reason,
  since,
  until,
  text,
});
