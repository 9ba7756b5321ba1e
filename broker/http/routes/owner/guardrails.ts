/** Guardrails: rules for all agents of the organisation, which can only tighten. */

import { z } from 'zod';
import {
  changeGuardrails as change,
  listGuardrailVersions,
  readGuardrails,
} from '../../../admin/policies/guardrails.ts';
import { describeRules } from '../../../admin/policies/rule-versions.ts';
import { Guardrails } from '../../../config-file/schema.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import {
  listRuleProblems,
  RuleDescriptions,
  Rules,
  SeenVersion,
  Versions,
  VersionsQuery,
  versionShown,
  Warnings,
} from '../../rule-schemas.ts';

const InForce = z
  .object({ version: z.int().describe('0 before there were any'), guardrails: Rules, words: RuleDescriptions })
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
  handle: async ({ services: { broker }, who }) => {
    const inForce = await readGuardrails(broker.store.db, who.organisationId);
    return json(200, { ...inForce, words: describeRules(inForce.guardrails) });
  },
});

/** GET /owner/guardrails/versions: newest first. */
export const guardrailsVersions = route({
  method: 'GET',
  path: '/owner/guardrails/versions',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.guardrails.versions',
  summary: 'The versions of the guardrails, newest first.',
  query: VersionsQuery,
  answers: { 200: { description: 'A page of versions with their rules.', schema: Versions } },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who, query }) => {
    const { versions, next } = await listGuardrailVersions(broker.store.db, who.organisationId, query);
    return json(200, { versions: versions.map(versionShown), next });
  },
});

const NewGuardrails = z.strictObject({ guardrails: Guardrails, version: SeenVersion });

/** POST /owner/guardrails: replaces all of them, in force from the next decision. */
export const changeGuardrails = route({
  method: 'POST',
  path: '/owner/guardrails',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.guardrails.change',
  summary: "Replaces the organisation's guardrails.",
  body: NewGuardrails,
  onMalformed: listRuleProblems(NewGuardrails),
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
    const changed = await change(services, changingOwner(context), command);
    return json(200, { ...changed, words: describeRules(changed.guardrails) });
  },
});
