import { z } from 'zod';
import { uuidv4 } from '../../../crypto/ids.ts';
import { listOrganisations, putOwner } from '../../../store/organisations.ts';
import { Refusal } from '../../errors.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** POST /owner/owners: adds an owner, or changes a role; for whoever runs the broker. */
export const addOwner = route({
  method: 'POST',
  path: '/owner/owners',
  auth: 'local',
  capability: 'owner.owners.add',
  summary: 'Adds an owner, or changes the role of one.',
  body: z.strictObject({
    email: z.email('write an e-mail address such as ann@acme.example').max(254),
    role: z.enum(['admin', 'approver', 'viewer']),
    organisation: z.string().max(64).optional().describe('its name, when there are several'),
  }),
  answers: { 200: 'The owner.' },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ governor: { broker }, body }) => {
    const organisations = await listOrganisations(broker.store.db);
    const chosen = body.organisation
      ? organisations.find((organisation) => organisation.name === body.organisation)
      : organisations[0];
    if (!chosen) throw new Refusal('not_found', 'There is no such organisation.');
    if (!body.organisation && organisations.length > 1)
      throw new Refusal('invalid_request', 'organisation: there are several; say which.');
    const owner = await putOwner(broker.store.db, {
      organisation_id: chosen.id,
      id: uuidv4(),
      email: body.email,
      role: body.role,
      origin: 'added',
      created_at: broker.clock(),
    });
    return json(200, { id: owner.id, email: owner.email, role: owner.role });
  },
});
