/** What an agent is granted, as owners see and change it. */
import { z } from 'zod';
import { type Remaining, whatRemains } from '../../../admin/access.ts';
import { changeGrant, removeGrants } from '../../../admin/grant-change.ts';
import { checkTerms, findGround, GrantRefused } from '../../../admin/grant-terms.ts';
import { GrantTerms } from '../../../config-file/schema.ts';
import { PlatformId } from '../../../platforms/manifest.ts';
import { findAgent, listGrants } from '../../../store/agents.ts';
import { listConnections } from '../../../store/connections.ts';
import type { AgentTable } from '../../../store/schema.ts';
import type { Db } from '../../../store/store.ts';
import { Refusal } from '../../errors.ts';
import { Grant, grantShown, LastsSeconds, lasting, NextSteps } from '../../owned-grant.ts';
import { howOf } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { type Context, route } from '../../route.ts';
import { AgentId } from './agents.ts';

const noAgent = () => new Refusal('not_found', 'The organisation has no such agent.');

async function loadAgent(db: Db, organisationId: string, id: string): Promise<AgentTable> {
  const agent = await findAgent(db, organisationId, id);
  if (!agent || agent.status === 'deleted') throw noAgent();
  return agent;
}

const speakerOf = (context: Pick<Context<'owner'>, 'who' | 'request' | 'correlationId'>) => ({
  owner: context.who.owner,
  how: howOf(context),
  correlationId: context.correlationId,
});

/** GET /owner/agents/{agent_id}/grants */
export const ownerGrants = route({
  method: 'GET',
  path: '/owner/agents/{agent_id}/grants',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.grants.list',
  summary: 'What an agent is granted.',
  params: { agent_id: AgentId },
  answers: {
    200: { description: 'All its grants, by platform.', schema: z.object({ grants: z.array(Grant) }) },
  },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) => {
    const { db } = broker.store;
    const agent = await loadAgent(db, who.organisationId, params.agent_id!);
    const connections = await listConnections(db, who.organisationId);
    const grants = await listGrants(db, who.organisationId, agent.id);
    return json(200, { grants: grants.map((grant) => grantShown(grant, connections, broker.clock())) });
  },
});

const { scopes, require_approval, recipients, repos, allow_repo_creation, connection } = GrantTerms.shape;

/** The terms of governance files; what is left out stays as it is, and null takes a limit away. */
const Terms = z.strictObject({
  scopes: scopes.optional().describe('all that the grant shall have; a new grant needs some'),
  expires_in_seconds: LastsSeconds,
  require_approval: require_approval.describe('whether every call waits for an approval'),
  recipients: recipients.unwrap().nullable().optional().describe('who may receive what is sent; null: anybody'),
  repos: repos.unwrap().nullable().optional().describe('repositories that it is limited to; null: all'),
  allow_repo_creation: allow_repo_creation.describe('whether repositories may be created under the owners in `repos`'),
  connection: connection.describe(
    'the name of the connection whose grant is meant; left out: the grant that calls without a connection use',
  ),
});

const Changed = z.object({
  grant: Grant,
  warnings: z.array(z.string()).describe('what may not be as it was meant'),
  next_steps: NextSteps,
});

/** POST /owner/agents/{agent_id}/grants/{platform}: in force at the very next decision, on every replica. */
export const changeOwnerGrant = route({
  method: 'POST',
  path: '/owner/agents/{agent_id}/grants/{platform}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.grants.change',
  summary: 'Grants an agent something on a platform, or changes what it is granted there.',
  params: { agent_id: AgentId, platform: z.string().describe('platform id') },
  body: Terms,
  answers: {
    200: { description: 'The grant as it is now.', schema: Changed },
    201: { description: 'The grant that was made.', schema: Changed },
  },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, params, body } = context;
    const platformId = params.platform!;
    const known = PlatformId.safeParse(platformId).success;
    const ground = known ? await findGround(services, who.organisationId, params.agent_id!, platformId) : 'no_platform';
    if (ground === 'no_agent') throw noAgent();
    if (ground === 'no_platform') throw new Refusal('not_found', 'The organisation has no such platform.');
    const { connection: name, recipients, ...terms } = body;
    try {
      const warnings = checkTerms(ground, {
        ...(terms.scopes && { scopes: terms.scopes }),
        ...(recipients && { recipients }),
        ...(name !== undefined && { connection: name }),
      });
      const named = ground.connections.find((one) => one.label === name);
      const { grant, created } = await changeGrant(services, speakerOf(context), ground, {
        ...(named && { connectionId: named.id }),
        ...(terms.scopes && { scopes: { all: terms.scopes } }),
        ...lasting(terms.expires_in_seconds),
        ...(terms.require_approval !== undefined && { requireApproval: terms.require_approval }),
        ...(recipients !== undefined && { recipients }),
        ...(terms.repos !== undefined && { repos: terms.repos }),
        ...(terms.allow_repo_creation !== undefined && { allowRepoCreation: terms.allow_repo_creation }),
      });
      const now = services.broker.clock();
      const shown = grantShown(grant, ground.connections, now);
      const granted = { platformId, scopes: shown.scopes, connectionId: grant.connection_id };
      const next_steps: Remaining[] = await whatRemains(services, ground.agent, granted, now);
      return json(created ? 201 : 200, { grant: shown, warnings, next_steps });
    } catch (error) {
      throw error instanceof GrantRefused ? new Refusal(error.code, error.message) : error;
    }
  },
});

/** DELETE /owner/agents/{agent_id}/grants/{platform} */
export const removeOwnerGrants = route({
  method: 'DELETE',
  path: '/owner/agents/{agent_id}/grants/{platform}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.grants.remove',
  summary: 'Takes away what an agent is granted on a platform.',
  params: { agent_id: AgentId, platform: z.string().describe('platform id') },
  query: z.object({
    connection: z
      .string()
      .optional()
      .describe('the name of the connection whose grant is meant; left out: all of them'),
  }),
  answers: {
    200: { description: 'They are gone; this is what they were.', schema: z.object({ removed: z.array(Grant) }) },
  },
  errors: ['invalid_request', 'not_found', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, params, query } = context;
    const { db } = services.broker.store;
    const agent = await loadAgent(db, who.organisationId, params.agent_id!);
    const connections = await listConnections(db, who.organisationId);
    const platformId = params.platform!;
    const named = connections.find((one) => one.label === query.connection && one.platform_id === platformId);
    if (query.connection !== undefined && !named)
      throw new Refusal('invalid_request', 'connection: the platform has no connection of this name.');
    const which = { platformId, ...(named && { connection: named }) };
    const removed = await removeGrants(services, speakerOf(context), agent, which);
    if (removed.length === 0) throw new Refusal('not_found', 'The agent has no such grant.');
    const now = services.broker.clock();
    return json(200, { removed: removed.map((grant) => grantShown(grant, connections, now)) });
  },
});
