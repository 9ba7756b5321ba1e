/** Sinks that the audit is pushed to. Their secrets are write-only. */
import { z } from 'zod';
import {
  changeAuditSink,
  createSink,
  type ReadSink,
  readSinks,
  removeAuditSink,
  testAuditSink,
} from '../../../admin/audit-sinks.ts';
import {
  describedSinkKinds,
  FORMATS,
  Format,
  SINK_KINDS,
  SinkName,
  sinkForm,
} from '../../../config-file/audit-sinks.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { changingOwner } from '../../owner-change.ts';
import { MadeSecret, ReceiverSecret, TestAnswers } from '../../receiver-schemas.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const Sink = z
  .object({
    id: z.guid(),
    name: z.string(),
    kind: z.enum(SINK_KINDS),
    format: z.enum(FORMATS),
    settings: z
      .record(z.string(), z.unknown())
      .describe('where it leads, by kind; never the secret; empty: the stored ones cannot be read'),
    has_secret: z.boolean(),
    status: z.enum(['active', 'paused']),
    next_index: z.int().describe('index in the receipt log of the first row that the receiver has not acknowledged'),
    rows_behind: z.int().describe('rows of the receipt log that it has not acknowledged'),
    rejected_rows: z.int().describe('rows that it accepted but reported as rejected (OTLP, partial success)'),
    delivered_at: z.iso.datetime().nullable().describe('when it acknowledged the last batch'),
    failing_since: z.iso
      .datetime()
      .nullable()
      .describe('since when it has not accepted the next batch; null: it is not failing'),
    failures: z.int().describe('number of failed attempts to send the next batch'),
    last_error: z.string().nullable().describe('the reason, as a sentence'),
    retry_at: z.iso.datetime().nullable().describe('when it is tried again'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'AuditSink' });

const UNREADABLE =
  'The stored settings cannot be read, so no rows are sent here: set them again, or remove the sink. If a newer version of Agent Broker wrote them, run that version.';

const shown = ({ sink, settings }: ReadSink): z.output<typeof Sink> => ({
  id: sink.id,
  name: sink.name,
  kind: sink.kind as (typeof SINK_KINDS)[number],
  format: sink.format as Format,
  settings: settings ?? {},
  has_secret: sink.secret !== null,
  status: sink.status,
  next_index: sink.next_index,
  rows_behind: Math.max(0, Number(sink.log_size) - sink.next_index),
  rejected_rows: sink.rejected_rows,
  delivered_at: instant(sink.delivered_at),
  failing_since: instant(sink.failing_since),
  failures: sink.failures,
  last_error: settings === undefined ? UNREADABLE : sink.last_error,
  retry_at: instant(sink.retry_at),
  created_at: new Date(sink.created_at).toISOString(),
});

const SECRET_IS =
  'sealed and never shown again: what is sent in the header (webhook with header, otlp), or access_key_id, secret_access_key and perhaps session_token (s3), or the key that signs (webhook)';

const From = z.union([z.enum(['now', 'beginning']), z.int().min(0)], {
  error: 'write now, beginning, or the index of a row',
});

/** GET /owner/audit-sinks */
export const ownerAuditSinks = route({
  method: 'GET',
  path: '/owner/audit-sinks',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.audit_sinks.list',
  summary: 'The receivers of the audit, the position of each, and its error; never a secret.',
  answers: { 200: { description: 'All of them, by name.', schema: z.object({ sinks: z.array(Sink) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { sinks: (await readSinks(broker.store.db, who.organisationId)).map(shown) }),
});

/** GET /owner/audit-sink-kinds */
export const auditSinkKinds = route({
  method: 'GET',
  path: '/owner/audit-sink-kinds',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.audit_sinks.kinds',
  summary: 'The kinds of audit sinks that this broker has, with the settings that each takes as JSON Schema.',
  answers: {
    200: {
      description: 'All of them; not `file` where the operator has set no folder.',
      schema: z.object({
        kinds: z.array(
          z.object({
            kind: z.enum(SINK_KINDS),
            settings: z.record(z.string(), z.unknown()).describe('JSON Schema of an object'),
            secret: z
              .enum(['made', 'needed', 'optional'])
              .nullable()
              .describe(
                'whether it has to have one; made: the broker makes one where none is given; null: it cannot have one',
              ),
            secret_is: z.string().nullable().describe('what the secret is'),
            secret_parts: z.array(z.string()).describe('names of its parts, where it is not one text'),
          }),
        ),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) =>
    json(200, {
      kinds: describedSinkKinds().filter(({ kind }) => kind !== 'file' || broker.config.auditFolder !== undefined),
    }),
});

/** POST /owner/audit-sinks */
export const addAuditSink = route({
  method: 'POST',
  path: '/owner/audit-sinks',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.audit_sinks.create',
  summary: 'Adds a receiver that the audit is pushed to.',
  body: sinkForm({
    name: SinkName,
    format: Format.default('ocsf'),
    from: From.default('now').describe(
      'where it begins: with rows from now on, with the first row of the receipt log, or with the row of this index',
    ),
    secret: ReceiverSecret.describe(`${SECRET_IS}; left out where the broker signs, it makes one`),
  }),
  secretBody: true,
  answers: {
    201: {
      description: 'The sink.',
      schema: Sink.extend({
        secret: MadeSecret,
      }).meta({ id: 'NewAuditSink' }),
    },
  },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { name, format, from, secret, ...given } = context.body;
    const created = await createSink(context.services, changingOwner(context), { name, format, from, given, secret });
    return json(201, { ...shown(created), ...(created.made && { secret: created.made.reveal() }) });
  },
});

const params = { id: z.guid().describe('the id of the sink') };

/** POST /owner/audit-sinks/{id}/settings */
export const changeSink = route({
  method: 'POST',
  path: '/owner/audit-sinks/{id}/settings',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.audit_sinks.settings',
  summary:
    'Pauses or resumes a sink, moves it to another row, or replaces settings, format or secret; a failing one is retried immediately.',
  params,
  body: z.strictObject({
    status: z.enum(['active', 'paused']).optional().describe('paused: nothing is sent, and nothing is lost'),
    from: From.optional().describe('continues from this row: rows after it that were already sent are sent again'),
    settings: sinkForm({}).optional().describe('kind and all settings; those before are forgotten'),
    format: Format.optional(),
    secret: ReceiverSecret.describe(SECRET_IS),
  }),
  secretBody: true,
  answers: { 200: { description: 'The sink as it is now.', schema: Sink } },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { settings: given, ...change } = context.body;
    const command = { id: storedUuid(context.params.id), given, ...change };
    return json(200, shown(await changeAuditSink(context.services, changingOwner(context), command)));
  },
});

/** DELETE /owner/audit-sinks/{id} */
export const removeSink = route({
  method: 'DELETE',
  path: '/owner/audit-sinks/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.audit_sinks.remove',
  summary: 'Removes a sink with its secret; what it was sent stays where it is.',
  params,
  answers: { 200: { description: 'It is gone.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) } },
  errors: ['not_found', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await removeAuditSink(context.services, changingOwner(context), id);
    return json(200, { id, removed: true });
  },
});

/** POST /owner/audit-sinks/{id}/test */
export const trySink = route({
  method: 'POST',
  path: '/owner/audit-sinks/{id}/test',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'audit-sink-tests', perMinute: 20, per: 'address' },
  capability: 'owner.audit_sinks.test',
  summary: 'Tests whether a receiver would accept rows, without sending one, and returns the result.',
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: TestAnswers,
  errors: ['not_found', 'rate_limited', 'audit_unavailable'],
  handle: async (context) =>
    json(200, await testAuditSink(context.services, changingOwner(context), storedUuid(context.params.id))),
});

export const auditSinkRoutes = [ownerAuditSinks, auditSinkKinds, addAuditSink, changeSink, removeSink, trySink];
