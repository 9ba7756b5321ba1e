import { z } from 'zod';
import { listReports, MAX_REPORTS_PER_DAY, storeReport } from '../../admin/agents/diagnostics.ts';
import { text } from '../../wire/action.ts';
import { Refusal } from '../errors.ts';
import { pageSize, uuid } from '../query.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const MAX_MESSAGE_BYTES = 4 * 1024;
const MAX_CONTEXT_BYTES = 16 * 1024;

const Report = z.strictObject({
  message: text(1024 * 1024)
    .min(1)
    .describe('what happened, at most 4 KiB'),
  severity: z.enum(['info', 'warning', 'error']).optional(),
  code: text(128).optional().describe('the error code or reason that was unexpected'),
  platform: text(64).optional(),
  endpoint: text(2048).optional(),
  correlation_id: z.guid('must be a correlation_id as it came in an answer').optional(),
  context: z.record(z.string(), z.unknown()).optional().describe('anything that helps, at most 16 KiB as JSON'),
});

/** POST /v1/agents/self/diagnostics (specification, Agent identity and self-service): the target of `report_hint`. */
export const diagnostics = route({
  method: 'POST',
  path: '/v1/agents/self/diagnostics',
  auth: 'agent',
  limit: { name: 'diagnostics', perMinute: 20, per: 'family' },
  capability: 'diagnostics.report',
  summary: 'Reports an answer that the agent did not expect.',
  body: Report,
  answers: {
    201: {
      description: 'The report was stored for the owners.',
      schema: z.object({ id: z.guid(), received_at: z.iso.datetime() }),
    },
  },
  errors: ['invalid_request', 'payload_too_large', 'rate_limited'],
  handle: async ({ services: { broker }, who, body }) => {
    const context = body.context === undefined ? null : JSON.stringify(body.context);
    if (Buffer.byteLength(body.message) > MAX_MESSAGE_BYTES)
      throw new Refusal('payload_too_large', 'message: at most 4 KiB.');
    if (context !== null && Buffer.byteLength(context) > MAX_CONTEXT_BYTES)
      throw new Refusal('payload_too_large', 'context: at most 16 KiB as JSON.');
    const { message, severity = 'info', code = null, platform = null, endpoint = null, correlation_id = null } = body;
    const report = { message, severity, code, platform, endpoint, correlation_id, context };
    const stored = await storeReport(broker, who.agent, report);
    if (!stored)
      throw new Refusal(
        'rate_limited',
        `At most ${MAX_REPORTS_PER_DAY} reports a day. The earlier reports were stored for the owners.`,
        {
          headers: { 'Retry-After': '3600' },
        },
      );
    return json(201, { id: stored.id, received_at: new Date(stored.received_at).toISOString() });
  },
});

const DiagnosticShown = z
  .object({
    id: z.guid(),
    agent_id: z.guid().describe("the agent's uuid"),
    agent_public_id: z.string().nullable().describe('`agt_…`'),
    agent_name: z.string().nullable(),
    severity: z.enum(['info', 'warning', 'error']),
    message: z.string(),
    code: z.string().nullable(),
    platform: z.string().nullable(),
    endpoint: z.string().nullable(),
    correlation_id: z.string().nullable(),
    context: z.unknown(),
    received_at: z.iso.datetime(),
  })
  .meta({ id: 'Diagnostic' });

/** GET /owner/diagnostics: newest first; deleted after 30 days. */
export const ownerDiagnostics = route({
  method: 'GET',
  path: '/owner/diagnostics',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.diagnostics.list',
  summary: "What the organisation's agents reported, newest first.",
  query: z.object({
    agent: z.string().optional().describe('the reports of this agent alone: its uuid, or its agent id'),
    limit: pageSize(200, 100),
    before: uuid('`next` of the previous page').optional(),
  }),
  answers: {
    200: {
      description: 'A page of reports.',
      schema: z.object({ diagnostics: z.array(DiagnosticShown), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query: { agent, limit, before } }) => {
    const { reports, next } = await listReports(broker, who.organisationId, { agent, limit, before });
    return json(200, {
      diagnostics: reports.map(({ organisation_id: _organisation, context, received_at, ...report }) => ({
        ...report,
        context: context === null ? null : JSON.parse(context),
        received_at: new Date(received_at).toISOString(),
      })),
      next,
    });
  },
});
