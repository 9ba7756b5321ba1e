/** Pipelines that plan and apply governance files with tokens of their own platform. */
import { z } from 'zod';
import { addPipeline, type ListedPipeline, listPipelines, removePipeline } from '../../../admin/pipelines.ts';
import { audienceOfPipeline } from '../../../auth/authenticate-pipeline.ts';
import { ISSUED_BY } from '../../../config-file/issued-by.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { ISSUED_BY_SHOWN, issuedByShown } from '../../issued-by.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const NewPipeline = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'write lower case letters, digits, dots, dashes and underscores, 64 at most')
    .describe('what to call it here and on record'),
  role: z.enum(['admin', 'viewer']).describe('admin: it plans, applies and exports; viewer: it plans and exports'),
  ...ISSUED_BY,
});

const Pipeline = z
  .object({
    id: z.guid(),
    name: z.string(),
    role: z.enum(['admin', 'viewer']),
    ...ISSUED_BY_SHOWN,
  })
  .meta({ id: 'Pipeline' });

const shown = (baseUrl: string, one: ListedPipeline): z.output<typeof Pipeline> => ({
  id: one.id,
  name: one.name,
  role: one.role,
  ...issuedByShown(one, audienceOfPipeline(baseUrl, one.id)),
});

/** GET /owner/pipelines */
export const ownerPipelines = route({
  method: 'GET',
  path: '/owner/pipelines',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.pipelines.list',
  summary: 'The pipelines that may plan or apply governance files.',
  answers: { 200: { description: 'All of them, by name.', schema: z.object({ pipelines: z.array(Pipeline) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const found = await listPipelines(broker.store.db, who.organisationId);
    return json(200, { pipelines: found.map((one) => shown(broker.baseUrl, one)) });
  },
});

/** POST /owner/pipelines */
export const addOwnerPipeline = route({
  method: 'POST',
  path: '/owner/pipelines',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.pipelines.add',
  summary: 'Trusts the tokens of a pipeline: it may plan, apply and export governance files, and nothing else.',
  body: NewPipeline,
  answers: { 201: { description: 'The pipeline, with the audience that its tokens need.', schema: Pipeline } },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const added = await addPipeline(services, changingOwner(context), { ...body, jwks_uri: body.jwks_uri ?? null });
    return json(201, shown(services.broker.baseUrl, added));
  },
});

/** DELETE /owner/pipelines/{id} */
export const removeOwnerPipeline = route({
  method: 'DELETE',
  path: '/owner/pipelines/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.pipelines.remove',
  summary: 'Stops trusting a pipeline. What it applied stays.',
  params: { id: z.guid().describe('the id of the pipeline') },
  answers: {
    200: { description: 'Its next request is refused.', schema: z.object({ id: z.guid(), removed: z.literal(true) }) },
  },
  errors: ['not_found', 'audit_unavailable'],
  handle: async (context) => {
    const id = storedUuid(context.params.id);
    await removePipeline(context.services, changingOwner(context), id);
    return json(200, { removed: true, id });
  },
});
