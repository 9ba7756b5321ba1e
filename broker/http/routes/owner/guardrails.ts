/** Guardrails: rules for all agents of the organisation, which can only tighten. */

import { z } from 'zod';
import { changeGuardrails as change, readGuardrails } from '../../../admin/guardrails.ts';
import { Guardrails } from '../../../config-file/schema.ts';
import { Rules, SeenVersion, sayWhatIsWrong, Warnings } from '../../given-rules.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const InForce = z
  .object({ version: z.int().describe('0 before there were any'), guardrails: Rules })
  .meta({ id: 'Guardrails' });

/** GET /owner/guardrails */
export const ownerGuardrails = route({
  method: 'GET',
  path: '/owner/guardrails',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.guardrails.read',
  summary: 'The guardrails in force.',
  answers: { 200: { description: 'The guardrails and their version.', schema: InForce } },
  errors: [],
  handle: async ({ services: { broker }, who }) => json(200, await readGuardrails(broker.store.db, who.organisationId)),
});

const NewGuardrails = z.strictObject({ guardrails: Guardrails, version: SeenVersion });

/** POST /owner/guardrails: all of them at once, in force at the very next decision. */
export const changeGuardrails = route({
  method: 'POST',
  path: '/owner/guardrails',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.guardrails.change',
  summary: 'Gives the organisation other guardrails.',
  body: NewGuardrails,
  onMalformed: sayWhatIsWrong(NewGuardrails),
  answers: {
    200: {
      description: 'The guardrails as they are now.',
      schema: InForce.extend({ warnings: Warnings }).meta({ id: 'GuardrailsChanged' }),
    },
  },
  errors: ['invalid_request', 'invalid_governance', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const command = { rules: body.guardrails, seen: body.version };
    return json(200, await change(services, changingOwner(context), command));
  },
});
