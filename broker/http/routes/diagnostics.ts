import { z } from 'zod';
import { UUID_PATTERN, uuidv7 } from '../../crypto/ids.ts';
import { listDiagnostics, putDiagnostic } from '../../store/diagnostics.ts';
import { text } from '../../wire/action.ts';
import { Refusal } from '../errors.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const MAX_MESSAGE_BYTES = 4 * 1024;
const MAX_CONTEXT_BYTES = 16 * 1024;
const SHOWN = 100;

const Report = z.strictObject({
  message: text(1024 * 1024)
    .min(1)
    .describe('what happened, at most 4 KiB'),
  severity: z.enum(['info', 'warning', 'error']).optional(),
  code: text(128).optional().describe('the error code or reason that was unexpected'),
  platform: text(64).optional(),
  endpoint: text(2048).optional(),
  correlation_id: z.string().regex(UUID_PATTERN, 'must be a correlation_id as it came in an answer').optional(),
  context: z.record(z.string(), z.unknown()).optional().describe('anything that helps, at most 16 KiB as JSON'),
});

/** POST /v1/agents/self/diagnostics (specification, Agent identity and self-service): where `report_hint` points. */
export const diagnostics = route({
  method: 'POST',
  path: '/v1/agents/self/diagnostics',
  auth: 'agent',
  limit: { name: 'diagnostics', perMinute: 20, per: 'agent' },
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
  handle: async ({ governor: { broker }, who, body }) => {
    const context = body.context === undefined ? null : JSON.stringify(body.context);
    if (Buffer.byteLength(body.message) > MAX_MESSAGE_BYTES)
      throw new Refusal('payload_too_large', 'message: at most 4 KiB.');
    if (context !== null && Buffer.byteLength(context) > MAX_CONTEXT_BYTES)
      throw new Refusal('payload_too_large', 'context: at most 16 KiB as JSON.');
    const now = broker.clock();
    const id = uuidv7(now);
    await putDiagnostic(broker.store.db, {
      organisation_id: who.agent.organisation_id,
      id,
      agent_id: who.agent.id,
      severity: body.severity ?? 'info',
      message: body.message,
      code: body.code ?? null,
      platform: body.platform ?? null,
      endpoint: body.endpoint ?? null,
      correlation_id: body.correlation_id ?? null,
      context,
      received_at: now,
    });
    return json(201, { id, received_at: new Date(now).toISOString() });
  },
});

const DiagnosticShown = z
  .object({
    id: z.guid(),
    agent_id: z.guid(),
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

/** GET /owner/diagnostics: the newest reports of the organisation's agents. */
export const ownerDiagnostics = route({
  method: 'GET',
  path: '/owner/diagnostics',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.diagnostics.list',
  summary: "What the organisation's agents reported, newest first.",
  answers: { 200: { description: 'The newest reports.', schema: z.object({ diagnostics: z.array(DiagnosticShown) }) } },
  errors: [],
  handle: async ({ governor: { broker }, who }) => {
    const rows = await listDiagnostics(broker.store.db, who.organisationId, SHOWN);
    return json(200, {
      diagnostics: rows.map(({ organisation_id: _organisation, context, received_at, ...row }) => ({
        ...row,
        context: context === null ? null : JSON.parse(context),
        received_at: new Date(received_at).toISOString(),
      })),
    });
  },
});
