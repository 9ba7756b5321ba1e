import { z } from 'zod';
import { UUID_PATTERN, uuidv7 } from '../../crypto/ids.ts';
import { findAgent } from '../../store/agents.ts';
import { countDiagnostics, listDiagnostics, putDiagnostic } from '../../store/diagnostics.ts';
import { text } from '../../wire/action.ts';
import { Refusal } from '../errors.ts';
import { pageSize, uuid } from '../query.ts';
import { json } from '../reply.ts';
import { route } from '../route.ts';

const MAX_MESSAGE_BYTES = 4 * 1024;
const MAX_CONTEXT_BYTES = 16 * 1024;
/** More of one agent and its children in a day help nobody, and would fill the store. */
const MOST_A_DAY = 500;
const DAY_MS = 24 * 3_600_000;

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
    const now = broker.clock();
    const { id: agentUuid, parent_id, organisation_id: organisationId } = who.agent;
    const familyRoot = { organisationId, id: parent_id ?? agentUuid };
    if ((await countDiagnostics(broker.store.db, familyRoot, now - DAY_MS)) >= MOST_A_DAY)
      throw new Refusal('rate_limited', `At most ${MOST_A_DAY} reports a day. Owners have those that came.`, {
        headers: { 'Retry-After': '3600' },
      });
    const id = uuidv7(now);
    await putDiagnostic(broker.store.db, {
      organisation_id: organisationId,
      id,
      agent_id: agentUuid,
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

/** GET /owner/diagnostics: newest first; they are forgotten after 30 days. */
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
    before: uuid('go on from here: `next` of the page before').optional(),
  }),
  answers: {
    200: {
      description: 'A page of reports.',
      schema: z.object({ diagnostics: z.array(DiagnosticShown), next: z.guid().nullable() }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query: { agent: named, limit, before } }) => {
    const { db } = broker.store;
    const agent = named === undefined ? undefined : await findAgent(db, who.organisationId, named);
    if (named !== undefined && !agent) return json(200, { diagnostics: [], next: null });
    const rows = await listDiagnostics(db, who.organisationId, { limit: limit + 1, agentUuid: agent?.id, before });
    const page = rows.slice(0, limit);
    return json(200, {
      diagnostics: page.map(({ organisation_id: _organisation, context, received_at, ...row }) => ({
        ...row,
        context: context === null ? null : JSON.parse(context),
        received_at: new Date(received_at).toISOString(),
      })),
      next: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
    });
  },
});
