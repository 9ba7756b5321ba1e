/** Policies: what agents may do within their grants. A version is immutable; each change creates a new one. */
import { z } from 'zod';
import {
  changePolicy as change,
  createPolicy,
  type ListedPolicy,
  listPolicies,
  listPolicyVersions,
  readPolicy,
} from '../../../admin/policies/policies.ts';
import { PolicyName, PolicyRules } from '../../../config-file/schema.ts';
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

const time = (instant: number): string => new Date(instant).toISOString();

const Listed = z
  .object({
    id: z.guid(),
    name: z.string(),
    version: z.int().describe('the one in force'),
    created_at: z.iso.datetime(),
    changed_at: z.iso.datetime().describe('since when these rules are in force'),
    agents: z.int().describe('how many agents, not stopped permanently, are under it'),
  })
  .meta({ id: 'PolicyListed' });

const Policy = Listed.extend({ rules: Rules, words: RuleDescriptions }).meta({ id: 'Policy' });
const Changed = Policy.extend({ warnings: Warnings }).meta({ id: 'PolicyChanged' });

const params = { id: z.string().describe('the id of the policy, or its name') };

const listed = ({ id, name, version, created_at, changed_at, agents }: ListedPolicy): z.output<typeof Listed> => ({
  id,
  name,
  version,
  created_at: time(created_at),
  changed_at: time(changed_at),
  agents,
});

/** GET /owner/policies */
export const ownerPolicies = route({
  method: 'GET',
  path: '/owner/policies',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.policies.list',
  summary: "The organisation's policies.",
  answers: { 200: { description: 'All of them, by name.', schema: z.object({ policies: z.array(Listed) }) } },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { policies: (await listPolicies(broker.store.db, who.organisationId)).map(listed) }),
});

/** GET /owner/policies/{id} */
export const ownerPolicy = route({
  method: 'GET',
  path: '/owner/policies/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.policies.read',
  summary: 'One policy with the rules in force.',
  params,
  answers: { 200: { description: 'The policy.', schema: Policy } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) => {
    const policy = await readPolicy(broker.store.db, who.organisationId, params.id);
    return json(200, { ...listed(policy), rules: policy.rules, words: policy.words });
  },
});

/** GET /owner/policies/{id}/versions: newest first. */
export const policyVersions = route({
  method: 'GET',
  path: '/owner/policies/{id}/versions',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.policies.versions',
  summary: 'The versions of a policy, newest first.',
  params,
  query: VersionsQuery,
  answers: { 200: { description: 'A page of versions with their rules.', schema: Versions } },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ services: { broker }, who, params, query }) => {
    const { versions, next } = await listPolicyVersions(broker.store.db, who.organisationId, params.id, query);
    return json(200, { versions: versions.map(versionShown), next });
  },
});

const NewPolicy = z.strictObject({ name: PolicyName, rules: PolicyRules });

/** POST /owner/policies */
export const makePolicy = route({
  method: 'POST',
  path: '/owner/policies',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.policies.create',
  summary: 'Makes a policy.',
  body: NewPolicy,
  onMalformed: listRuleProblems(NewPolicy),
  answers: { 201: { description: 'The policy.', schema: Changed } },
  errors: ['invalid_request', 'invalid_governance', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { rules, words, warnings, ...made } = await createPolicy(
      context.services,
      changingOwner(context),
      context.body,
    );
    return json(201, { ...listed(made), rules, words, warnings });
  },
});

const NewVersion = z.strictObject({ rules: PolicyRules, version: SeenVersion });

/** POST /owner/policies/{id}: in force from the next decision. */
export const changePolicy = route({
  method: 'POST',
  path: '/owner/policies/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.policies.change',
  summary: 'Gives a policy a new version of its rules.',
  params,
  body: NewVersion,
  onMalformed: listRuleProblems(NewVersion),
  answers: { 200: { description: 'The policy as it is now.', schema: Changed } },
  errors: ['invalid_request', 'invalid_governance', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const command = { policy: params.id, rules: body.rules, seen: body.version };
    const { rules, words, warnings, ...changed } = await change(services, changingOwner(context), command);
    return json(200, { ...listed(changed), rules, words, warnings });
  },
});
