/** All organisations of the broker, for its operator. */
import { z } from 'zod';
import { addOrganisation, listOrganisations } from '../../../admin/organisations.ts';
import { OrganisationName } from '../../../config-file/schema.ts';
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
  answers: { 200: { description: 'Oldest first.', schema: z.object({ organisations: z.array(Listed) }) } },
  errors: [],
  handle: async ({ services: { broker } }) => {
    const organisations = await listOrganisations(broker.store.db);
    return json(200, {
      organisations: organisations.map(({ id, name, created_at }) => ({
        id,
        name,
        created_at: new Date(created_at).toISOString(),
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
