/** Policies: what agents may do within their grants. A version is never changed; a change is a new one. */
import { z } from 'zod';
import { PolicyName, PolicyRules } from '../../../config-file/schema.ts';
import { uuidv4 } from '../../../crypto/ids.ts';
import { lockOrganisation } from '../../../store/governance.ts';
import { putPolicy } from '../../../store/governed-versions.ts';
import { countAgentsByPolicy, findPolicy, listPolicies, listPolicyVersions } from '../../../store/policies.ts';
import type { Db } from '../../../store/store.ts';
import { Refusal } from '../../errors.ts';
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
import { pageSize, wholeNumber } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const time = (instant: number): string => new Date(instant).toISOString();

const Listed = z
  .object({
    id: z.guid(),
    name: z.string(),
    version: z.int().describe('the one in force'),
    created_at: z.iso.datetime(),
    agents: z.int().describe('how many agents, not stopped for good, are under it'),
  })
  .meta({ id: 'PolicyListed' });

const Policy = Listed.extend({ rules: Rules }).meta({ id: 'Policy' });
const Changed = Policy.extend({ warnings: Warnings }).meta({ id: 'PolicyChanged' });
const Version = z
  .object({ version: z.int(), rules: Rules, created_at: z.iso.datetime() })
  .meta({ id: 'PolicyVersion' });

const params = { id: z.string().describe('the id of the policy, or its name') };
const unknown = () => new Refusal('not_found', 'The organisation has no such policy.');

async function load(db: Db, organisationId: string, idOrName: string) {
  const found = idOrName.includes('\0') ? undefined : await findPolicy(db, organisationId, idOrName);
  if (!found) throw unknown();
  return found;
}

async function shown(db: Db, organisationId: string, id: string): Promise<z.output<typeof Policy>> {
  const { name, version, created_at, rules } = await load(db, organisationId, id);
  const agents = (await countAgentsByPolicy(db, organisationId)).get(id) ?? 0;
  return { id, name, version, created_at: time(created_at), agents, rules: JSON.parse(rules) };
}

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
  handle: async ({ services: { broker }, who }) => {
    const { db } = broker.store;
    const agents = await countAgentsByPolicy(db, who.organisationId);
    const policies = (await listPolicies(db, who.organisationId)).map(({ id, name, version, created_at }) => ({
      id,
      name,
      version,
      created_at: time(created_at),
      agents: agents.get(id) ?? 0,
    }));
    return json(200, { policies });
  },
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
    const { db } = broker.store;
    const { id } = await load(db, who.organisationId, params.id);
    return json(200, await shown(db, who.organisationId, id));
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
  query: z.object({
    limit: pageSize(100, 20),
    before: wholeNumber(1, 2 ** 31 - 1)
      .optional()
      .describe('the last version of the page before'),
  }),
  answers: {
    200: {
      description: 'A page of versions with their rules.',
      schema: z.object({ versions: z.array(Version), next: z.int().nullable() }),
    },
  },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ services: { broker }, who, params, query: { limit, before } }) => {
    const { db } = broker.store;
    const { organisationId } = who;
    const { id } = await load(db, organisationId, params.id);
    const found = await listPolicyVersions(db, { organisationId, id }, { limit, ...(before && { before }) });
    const versions = found.map(({ version, rules, created_at }) => ({
      version,
      rules: JSON.parse(rules),
      created_at: time(created_at),
    }));
    const last = found.length === limit ? found.at(-1) : undefined;
    return json(200, { versions, next: last && last.version > 1 ? last.version : null });
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
  onMalformed: sayWhatIsWrong(NewPolicy),
  answers: { 201: { description: 'The policy.', schema: Changed } },
  errors: ['invalid_request', 'invalid_governance', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { organisationId } = who;
    const { store, clock } = services.broker;
    const platforms = await knownPlatforms(store.db, organisationId);
    const { rules, warnings } = takeRules(body.rules, 'policy', 'rules', platforms);
    const made = await ownerChange(context, { reason: 'policy_created' }, async (db, note) => {
      await lockOrganisation(db, organisationId);
      if ((await listPolicies(db, organisationId)).some(({ name }) => name === body.name))
        throw new Refusal(
          'conflict',
          `There is a policy "${body.name}" already: send its new rules to its own address.`,
        );
      const policy = { organisationId, id: uuidv4(), name: body.name, rules: JSON.stringify(rules) };
      note({ policy: { id: policy.id, name: body.name, version: await putPolicy(db, policy, clock()) } });
      return await shown(db, organisationId, policy.id);
    });
    return json(201, { ...made, warnings });
  },
});

const NewVersion = z.strictObject({ rules: PolicyRules, version: SeenVersion });

/** POST /owner/policies/{id}: in force at the very next decision. */
export const changePolicy = route({
  method: 'POST',
  path: '/owner/policies/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.policies.change',
  summary: 'Gives a policy a new version of its rules.',
  params,
  body: NewVersion,
  onMalformed: sayWhatIsWrong(NewVersion),
  answers: { 200: { description: 'The policy as it is now.', schema: Changed } },
  errors: ['invalid_request', 'invalid_governance', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { organisationId } = who;
    const { store, clock } = services.broker;
    const { id } = await load(store.db, organisationId, context.params.id);
    const platforms = await knownPlatforms(store.db, organisationId);
    const { rules, warnings } = takeRules(body.rules, 'policy', 'rules', platforms);
    const changed = await ownerChange(context, { reason: 'policy_changed' }, async (db, note) => {
      await lockOrganisation(db, organisationId);
      const { name, version: inForce } = await load(db, organisationId, id);
      refuseOtherVersion(body.version, inForce);
      const version = await putPolicy(db, { organisationId, id, name, rules: JSON.stringify(rules) }, clock());
      note({ policy: { id, name, version } });
      return await shown(db, organisationId, id);
    });
    return json(200, { ...changed, warnings });
  },
});
