/** Grants of an agent, for owners: view and change. */
import { z } from 'zod';
import { changeGrant } from '../../../admin/grants/change-grant.ts';
import { listGrantsOf } from '../../../admin/grants/list-grants.ts';
import { removeGrants } from '../../../admin/grants/remove-grants.ts';
import { GrantTerms } from '../../../config-file/terms.ts';
import { AgentId } from '../../owned/agent.ts';
import { Grant, grantShown, LastsSeconds, lasting, NextSteps } from '../../owned/grant.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/agents/{agent_id}/grants */
export const ownerGrants = route({
  method: 'GET',
  path: '/owner/agents/{agent_id}/grants',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.grants.list',
  summary: 'The grants of an agent.',
  params: { agent_id: AgentId },
  answers: {
    200: { description: 'All its grants, by platform.', schema: z.object({ grants: z.array(Grant) }) },
  },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) => {
    const { grants, connections } = await listGrantsOf(broker, who.organisationId, params.agent_id);
    return json(200, { grants: grants.map((grant) => grantShown(grant, connections, broker.clock())) });
  },
});

const { scopes, require_approval, recipients, repos, allow_repo_creation, refs, ref_changes, connection } =
  GrantTerms.shape;

/** The terms of governance files; omitted members stay unchanged, and null removes a limit. */
const Terms = z.strictObject({
  scopes: scopes.optional().describe('all that the grant shall have; a new grant needs some'),
  expires_in_seconds: LastsSeconds,
  require_approval: require_approval.describe('whether every call waits for an approval'),
  recipients: recipients.unwrap().nullable().optional().describe('who may receive what is sent; null: anybody'),
  repos: repos.unwrap().nullable().optional().describe('repositories that it is limited to; null: all'),
  allow_repo_creation: allow_repo_creation.describe('whether repositories may be created under the owners in `repos`'),
  refs: refs.unwrap().nullable().optional().describe('branches and tags that it may write; null: all'),
  ref_changes: ref_changes
    .unwrap()
    .nullable()
    .optional()
    .describe('how it may change branches and tags; null: in any way'),
  connection: connection.describe(
    'the name of the connection whose grant is meant; left out: the grant that calls without a connection use',
  ),
  version: z
    .string()
    .max(64)
    .nullable()
    .optional()
    .describe(
      'of the grant that was edited, null where there was none: if it is another one by now, nothing is changed',
    ),
});

const Changed = z.object({
  grant: Grant,
  warnings: z.array(z.string()).describe('what may not be as it was meant'),
  next_steps: NextSteps,
});

/** POST /owner/agents/{agent_id}/grants/{platform}: in force from the next decision, on every replica. */
export const changeOwnerGrant = route({
  method: 'POST',
  path: '/owner/agents/{agent_id}/grants/{platform}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.grants.change',
  summary: 'Creates or changes a grant of an agent on a platform.',
  params: { agent_id: AgentId, platform: z.string().describe('platform id') },
  body: Terms,
  answers: {
    200: { description: 'The grant as it is now.', schema: Changed },
    201: { description: 'The grant that was made.', schema: Changed },
  },
  errors: ['invalid_request', 'not_on_plan', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const { connection, scopes, recipients, repos, refs } = body;
    const { grant, created, warnings, remaining, connections } = await changeGrant(services, changingOwner(context), {
      agentId: params.agent_id,
      platformId: params.platform,
      ...(connection !== undefined && { connection }),
      ...(scopes && { scopes }),
      ...(body.version !== undefined && { version: body.version }),
      ...lasting(body.expires_in_seconds),
      ...(body.require_approval !== undefined && { requireApproval: body.require_approval }),
      ...(recipients !== undefined && { recipients }),
      ...(repos !== undefined && { repos }),
      ...(body.allow_repo_creation !== undefined && { allowRepoCreation: body.allow_repo_creation }),
      ...(refs !== undefined && { refs }),
      ...(body.ref_changes !== undefined && { refChanges: body.ref_changes }),
    });
    const shown = grantShown(grant, connections, services.broker.clock());
    return json(created ? 201 : 200, { grant: shown, warnings, next_steps: remaining });
  },
});

/** DELETE /owner/agents/{agent_id}/grants/{platform} */
export const removeOwnerGrants = route({
  method: 'DELETE',
  path: '/owner/agents/{agent_id}/grants/{platform}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.grants.remove',
  summary: 'Removes the grants of an agent on a platform.',
  params: { agent_id: AgentId, platform: z.string().describe('platform id') },
  query: z.object({
    connection: z
      .string()
      .optional()
      .describe('the name of the connection whose grant is meant; left out: all of them'),
  }),
  answers: {
    200: { description: 'The removed grants.', schema: z.object({ removed: z.array(Grant) }) },
  },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, query } = context;
    const { removed, connections } = await removeGrants(services, changingOwner(context), {
      agentId: params.agent_id,
      platformId: params.platform,
      ...(query.connection !== undefined && { connection: query.connection }),
    });
    const now = services.broker.clock();
    return json(200, { removed: removed.map((grant) => grantShown(grant, connections, now)) });
  },
});
