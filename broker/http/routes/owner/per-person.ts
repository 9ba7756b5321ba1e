/** The switch of a platform for one token per person. */
import { z } from 'zod';
import { setPerPerson } from '../../../admin/people/per-person.ts';
import { PerPersonFields } from '../../../platforms/manifest-fields.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** POST /owner/platforms/{platform}/per-person */
export const setOwnerPerPerson = route({
  method: 'POST',
  path: '/owner/platforms/{platform}/per-person',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.per_person',
  summary:
    'Sets whether each person has a token of their own on a platform, and which sources may assert who a person is; a governance file overrides it.',
  params: { platform: z.string().describe('the id by which agents name it') },
  body: PerPersonFields,
  answers: {
    200: { description: 'The setting as it is now.', schema: z.object({ per_person: PerPersonFields }) },
  },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const command = { platformId: params.platform, perPerson: body };
    return json(200, { per_person: await setPerPerson(services, changingOwner(context), command) });
  },
});
