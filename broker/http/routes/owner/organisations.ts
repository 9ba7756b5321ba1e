/** All organisations of the broker, for its operator. */
import { z } from 'zod';
import { closeOrganisation as close } from '../../../admin/organisations/close-organisation.ts';
import { addOrganisation, listOrganisations, organisationWithId } from '../../../admin/organisations/organisations.ts';
import { OrganisationName } from '../../../config-file/schema.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Listed = z.object({ id: z.guid(), name: z.string(), created_at: z.iso.datetime() });

/** GET /owner/organisations */
export const ownerOrganisations = route({
  method: 'GET',
  path: '/owner/organisations',
  auth: 'local',
  capability: 'owner.organisations.list',
  summary: 'All organisations of the broker.',
  answers: {
    200: {
      description: 'Oldest first.',
      schema: z.object({
        organisations: z.array(Listed.extend({ admins: z.int().describe('0: it was closed') })),
      }),
    },
  },
  errors: [],
  handle: async ({ services: { broker } }) => {
    const organisations = await listOrganisations(broker.store.db);
    return json(200, {
      organisations: organisations.map(({ id, name, created_at, admins }) => ({
        id,
        name,
        created_at: new Date(created_at).toISOString(),
        admins,
      })),
    });
  },
});

/** POST /owner/organisations */
export const createOrganisation = route({
  method: 'POST',
  path: '/owner/organisations',
  auth: 'local',
  capability: 'owner.organisations.create',
  summary: 'Creates an organisation with its first admin.',
  body: z.strictObject({
    name: OrganisationName,
    admin: z.email('write an e-mail address such as ann@acme.example').max(254).describe('address of its first admin'),
  }),
  answers: {
    201: {
      description: 'The organisation, with one admin and the policy `default`.',
      schema: Listed.extend({ admin: z.object({ id: z.guid(), email: z.string() }) }),
    },
  },
  errors: ['invalid_request', 'conflict', 'audit_unavailable'],
  handle: async ({ services, body, correlationId }) => {
    const added = { name: body.name, ownerEmail: body.admin, correlationId };
    const { organisation, owner } = await addOrganisation(services, added);
    return json(201, {
      id: organisation.id,
      name: organisation.name,
      created_at: new Date(organisation.created_at).toISOString(),
      admin: { id: owner.id, email: owner.email },
    });
  },
});

/** POST /owner/organisations/{id}/close */
export const closeOrganisation = route({
  method: 'POST',
  path: '/owner/organisations/{id}/close',
  auth: 'local',
  capability: 'owner.organisations.close',
  summary: 'Does the next step of closing an organisation: repeat it until `closed`.',
  description:
    'Its agents are revoked, some at a time; then its connections, credentials, channels and pipelines end, and its owners become viewers. Each audit sink is removed once it has sent all rows.',
  params: { id: z.guid() },
  body: z.strictObject({
    drop_sinks: z.boolean().default(false).describe('remove audit sinks with the rows that they did not send yet'),
  }),
  answers: {
    200: {
      description: 'What is left.',
      schema: z.object({
        id: z.guid(),
        closed: z.boolean(),
        agents_left: z.boolean(),
        sinks: z.array(z.object({ name: z.string(), behind: z.int().describe('rows that it did not send yet') })),
      }),
    },
  },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async ({ services, params, body, correlationId }) => {
    const { id } = await organisationWithId(services.broker, storedUuid(params.id));
    const by = { owner: { id: 'operator', organisation_id: id }, how: 'local', correlationId } as const;
    const { agentsLeft, sinks } = await close(services, by, { dropSinks: body.drop_sinks });
    return json(200, { id, closed: !agentsLeft && sinks.length === 0, agents_left: agentsLeft, sinks });
  },
});
