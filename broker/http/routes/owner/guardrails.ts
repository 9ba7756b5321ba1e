/** Guardrails: rules for all agents of the organisation, which can only tighten. */

import { z } from 'zod';
import { Guardrails } from '../../../config-file/schema.ts';
import { present } from '../../../policy/present.ts';
import { lockOrganisation } from '../../../store/governance.ts';
import { findGuardrailRules, putGuardrails } from '../../../store/governed-versions.ts';
import { findOrganisation } from '../../../store/organisations.ts';
import type { Db } from '../../../store/store.ts';
import {
  knownPlatforms,
  Rules,
  refuseOtherVersion,
  SeenVersion,
  sayWhatIsWrong,
  takeRules,
  Warnings,
} from '../../given-rules.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const InForce = z
  .object({ version: z.int().describe('0 before there were any'), guardrails: Rules })
  .meta({ id: 'Guardrails' });

async function inForce(db: Db, organisationId: string): Promise<z.output<typeof InForce>> {
  const version = present(await findOrganisation(db, organisationId), 'organisation').guardrails_version;
  const rules = version === 0 ? '[]' : await findGuardrailRules(db, organisationId, version);
  return { version, guardrails: JSON.parse(present(rules, 'guardrails')) };
}

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
  handle: async ({ services: { broker }, who }) => json(200, await inForce(broker.store.db, who.organisationId)),
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
    const { services, who, body } = context;
    const { organisationId } = who;
    const { store, clock } = services.broker;
    const platforms = await knownPlatforms(store.db, organisationId);
    const { rules, warnings } = takeRules(body.guardrails, 'guardrail', 'guardrails', platforms);
    const changed = await ownerChange(context, { reason: 'guardrails_changed' }, async (db, note) => {
      const organisation = await lockOrganisation(db, organisationId);
      refuseOtherVersion(body.version, present(organisation, 'organisation').guardrails_version);
      const version = await putGuardrails(db, organisationId, JSON.stringify(rules), clock());
      note({ guardrails: { version } });
      return await inForce(db, organisationId);
    });
    return json(200, { ...changed, warnings });
  },
});
