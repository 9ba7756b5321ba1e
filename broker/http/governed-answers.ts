/** Schemas of the answers of governed calls (specification, Resources and their fields; Governed call). */
import { z } from 'zod';
import { AGENT_STATUSES, DENY_REASONS, HALT_CAUSES } from '../policy/facts.ts';
import { PERIODS } from '../policy/limit.ts';

const moment = z.iso.datetime();

const LogHead = z
  .object({
    size: z.int().describe('rows in the log'),
    root: z.string().describe('root hash of the Merkle tree over them, in base64'),
    at: moment.describe('when it was signed'),
    sig: z.string().describe('signature line of the checkpoint: id of the key, and signature, in base64'),
  })
  .describe('the newest checkpoint of the receipt log of the organisation; absent while there is none')
  .meta({ id: 'LogHead' });

/** EnvelopeMeta. */
export const EnvelopeMeta = z
  .looseObject({
    capability: z.string(),
    timestamp: moment,
    next_actions: z
      .array(z.object({ capability: z.string(), endpoint: z.string() }))
      .describe('sensible next calls from here'),
    docs: z.url().describe('where this capability is described'),
    audit_id: z.guid().optional().describe('the audit row, whose receipt can be fetched'),
    log: LogHead.optional(),
  })
  .meta({ id: 'EnvelopeMeta' });

/** Members of `_meta` of a call that was made, or is held. */
const CallNotes = {
  dropped_headers: z.array(z.string()).optional().describe('names in `headers` that are not sent'),
  trace_id: z.string().optional().describe('of a traced call'),
};

export const AgentHalt = z
  .object({
    state: z.enum(['suspended', 'revoked', 'breaker_open']),
    since: moment.nullable(),
    cause: z.enum(HALT_CAUSES),
    detail: z.string().nullable(),
    recoverable_by: z.enum(['owner', 'time']),
    retry_after_seconds: z.int().nullable(),
    instructions: z.string().describe('what to do, in a sentence'),
  })
  .meta({ id: 'AgentHalt' });

const ReportHint = z
  .object({ url: z.url(), suggested_payload: z.record(z.string(), z.unknown()) })
  .describe('ready to be sent to POST /v1/agents/self/diagnostics')
  .meta({ id: 'ReportHint' });

const LimitAnswer = z
  .object({
    rule: z.string(),
    most: z.number(),
    per: z.enum(PERIODS),
    used: z.number().describe('in this period, before the call'),
    asked: z.number().nullable().describe('the amount of the call; null: unknown'),
    left: z.number(),
    resets_at: z.iso.datetime().describe('when the next period begins'),
  })
  .meta({ id: 'Limit' });

export const ActionDenied = z
  .object({
    error: z.enum(['Permission denied', 'agent_halted']),
    reason: z.enum(DENY_REASONS).exclude(['agent_inactive']).describe('an agent that is not set up yet is a 409'),
    detail: z.string(),
    correlation_id: z.guid(),
    audit_id: z.guid().optional(),
    halt: AgentHalt.optional().describe('only when the agent itself is halted'),
    platform: z
      .string()
      .optional()
      .describe(
        '`circuit_breaker_open` of one platform: the one whose calls are refused, until `Retry-After`; absent when the breaker refuses all',
      ),
    violating: z
      .array(z.string())
      .optional()
      .describe(
        'what the grant does not allow: addresses, domains, owner/repo, full names of refs, push options (`-o name`)',
      ),
    constraint: z.object({ kind: z.literal('repos'), reason: z.string(), violating: z.array(z.string()) }).optional(),
    limit: LimitAnswer.optional().describe('of the rule that denies, where the call is beyond it'),
    report_hint: ReportHint,
    _meta: EnvelopeMeta.optional(),
  })
  .meta({ id: 'ActionDenied' });

/** 200 of POST /v1/actions. */
export const PlatformAnswer = z
  .object({
    data: z.unknown().describe("the platform's response, with any status; a credential in it is redacted"),
    _meta: EnvelopeMeta.extend({
      ...CallNotes,
      upstream_status: z.int().describe("the platform's own status"),
      encoding: z.literal('base64').optional().describe('the body is no text, and `data` has its bytes in base64'),
      upstream_content_type: z.string().optional().describe('media type of a body that is no JSON'),
      upstream_location: z
        .string()
        .optional()
        .describe('where a redirect points, without its query; it was not followed'),
      upstream_followed: z
        .string()
        .optional()
        .describe('the host that the platform redirected this read to, and whose answer this is'),
      upstream_headers: z
        .record(z.string(), z.string())
        .optional()
        .describe('headers of its answer, by name in lower case: paging, retry, rate limits, validators, request ids'),
      redacted: z.literal(true).optional().describe('the answer contained the credential, which was removed'),
      masked: z
        .object({ count: z.int(), rules: z.array(z.string()) })
        .optional()
        .describe('how many members and values of the answer rules mask, and which rules'),
      limits: z.array(LimitAnswer).optional().describe('the limits that count the call'),
      standing_approval: z
        .object({ id: z.guid(), left: z.int() })
        .optional()
        .describe('the standing approval that allowed the call, and its remaining uses'),
    }).catchall(z.unknown()),
  })
  .meta({ id: 'PlatformAnswer' });

export const PendingApproval = z
  .object({
    status: z.literal('pending_approval'),
    approval_id: z.guid().nullable(),
    message: z.string(),
    approval_url: z.url().describe('the page on which an owner decides'),
    sentence: z.string().describe('what the call does, as shown to the person who decides'),
    limit: LimitAnswer.optional().describe('of the rule that holds it, where the call is beyond it'),
    expires_at: moment,
    _meta: EnvelopeMeta.extend(CallNotes).catchall(z.unknown()),
  })
  .meta({ id: 'PendingApproval' });

/** 409 of POST /v1/actions. */
export const NotReady = z
  .object({
    error: z.enum(['needs_consent', 'platform_reauth_needed', 'agent_inactive']),
    platform: z.string(),
    consent_requested: z.boolean().describe('whether an access request waits for an owner'),
    message: z.string(),
    correlation_id: z.guid(),
    reason_code: z.literal('needs_consent').optional(),
    reason: z
      .literal('credential_malformed')
      .optional()
      .describe(
        'of platform_reauth_needed: the stored credential cannot be sent, and no request was sent to the platform',
      ),
    scope: z.string().optional(),
    request_token: z.string().optional(),
    connect_url: z.url().optional(),
    consent_url: z.url().optional().describe('the same as connect_url'),
    poll_url: z.string().optional(),
    audit_id: z.guid().nullish(),
  })
  .meta({ id: 'NotReady' });

/** 412 of POST /v1/actions. */
export const NotConnected = z
  .object({
    error: z.enum(['platform_not_connected', 'consent_required']),
    platform: z.string(),
    correlation_id: z.guid(),
    code: z.string().optional(),
    reason: z.enum(['no_caller', 'asserted_not_allowed', 'not_consented']).optional(),
    detail: z.string().optional(),
    consent_url: z.url().optional(),
    consent_token: z.string().optional(),
    poll_url: z.string().optional(),
    expires_at: moment.optional(),
    message: z.string().optional(),
    audit_id: z.guid().nullish(),
  })
  .meta({ id: 'NotConnected' });

/** 200 of GET /v1/agents/me. */
export const AgentIdentity = z
  .object({
    status: z.literal('approved'),
    agent_id: z.string(),
    did: z.string(),
    name: z.string(),
    owner_id: z.guid(),
    org_id: z.guid().nullable(),
    agent_type: z.string().nullable(),
    agent_status: z.enum(AGENT_STATUSES),
    parent_agent_id: z.string().nullable().describe('of a child identity'),
    created_at: moment.nullable(),
    expires_at: moment.nullable(),
    halt: AgentHalt.optional().describe('only while halted'),
  })
  .meta({ id: 'AgentIdentity' });
