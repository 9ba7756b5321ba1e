/** Which MCP clients were let in, by whom and as which agents; and how to put one out. */

import { z } from 'zod';
import { mergeScopes } from '../../../admin/new-agent.ts';
import { UUID_PATTERN } from '../../../crypto/ids.ts';
import { present } from '../../../policy/present.ts';
import { listGrants } from '../../../store/agents.ts';
import {
  endMcpAuthorisation,
  type ListedAuthorisation,
  listMcpAuthorisations,
} from '../../../store/mcp-authorisations.ts';
import type { Db } from '../../../store/store.ts';
import { Refusal } from '../../errors.ts';
import { instant } from '../../instant.ts';
import { ownerChange } from '../../owner-change.ts';
import { ScopesOn } from '../../registering.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Authorisation = z
  .object({
    id: z.guid(),
    status: z
      .enum(['live', 'ended', 'expired'])
      .describe('expired: a year is over, or no token is left with which it could be used'),
    agent: z
      .object({ id: z.guid(), agent_id: z.string(), name: z.string(), status: z.string() })
      .describe('which it acts as'),
    client: z.object({
      id: z.string(),
      name: z.string().describe('as it calls itself'),
      redirect_host: z.string().describe('where its code went'),
    }),
    scopes: z.array(z.string()).describe('what its tokens are good for'),
    grants: ScopesOn.describe('what its agent may do now'),
    owner_id: z.guid().describe('who let it in'),
    owner_email: z.string(),
    created_at: z.iso.datetime(),
    last_used_at: z.iso
      .datetime()
      .nullable()
      .describe('when it last got a token, which is good for a quarter of an hour; null: none is on file'),
    expires_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
    ended_because: z
      .enum(['owner', 'client', 'reuse', 'agent'])
      .nullable()
      .describe(
        'who ended it; reuse: one of its refresh tokens came twice, so that somebody else may have it; agent: its agent was revoked',
      ),
  })
  .meta({ id: 'McpAuthorisation' });

type Grants = Awaited<ReturnType<typeof listGrants>>;

function shown(one: ListedAuthorisation, grants: Grants, now: number): z.output<typeof Authorisation> {
  const isOver = one.agent_status === 'revoked' || one.agent_status === 'deleted';
  // Revoking an agent ends its authorisations at the same moment; those of agents that ended in other ways stay as they were.
  const withAgent = isOver && (one.ended_at === null || one.ended_at === one.agent_status_since);
  const endedAt = withAgent ? one.agent_status_since : one.ended_at;
  return {
    id: one.id,
    status: withAgent || one.ended_at !== null ? 'ended' : one.expires_at <= now ? 'expired' : 'live',
    agent: { id: one.agent_id, agent_id: one.agent_public_id, name: one.agent_name, status: one.agent_status },
    client: { id: one.client_id, name: one.client_name, redirect_host: one.redirect_host },
    scopes: one.scope.split(' '),
    grants: mergeScopes(grants.filter(({ agent_id }) => agent_id === one.agent_id).map(scopesOf)),
    owner_id: one.owner_id,
    owner_email: one.owner_email,
    created_at: new Date(one.created_at).toISOString(),
    last_used_at: instant(one.last_token_at),
    expires_at: new Date(one.expires_at).toISOString(),
    ended_at: instant(endedAt),
    ended_because: withAgent ? 'agent' : one.ended_because,
  };
}

const scopesOf = ({ platform_id, scopes }: Grants[number]) => ({ platformId: platform_id, scopes: JSON.parse(scopes) });

/** GET /owner/mcp-authorisations */
export const ownerMcpAuthorisations = route({
  method: 'GET',
  path: '/owner/mcp-authorisations',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.mcp_authorisations.list',
  summary: 'The MCP clients that were let in, newest first; ended ones stay for 90 days.',
  answers: {
    200: { description: 'The authorisations.', schema: z.object({ authorisations: z.array(Authorisation) }) },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const { db } = broker.store;
    const found = await listMcpAuthorisations(db, who.organisationId);
    const grants = await listGrants(db, who.organisationId);
    return json(200, { authorisations: found.map((one) => shown(one, grants, broker.clock())) });
  },
});

/** DELETE /owner/mcp-authorisations/{id}: its tokens are refused from the next call on, on every replica. */
export const endOwnerMcpAuthorisation = route({
  method: 'DELETE',
  path: '/owner/mcp-authorisations/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.mcp_authorisations.end',
  summary: 'Puts an MCP client out. Its agent stays, with what it may do.',
  params: { id: z.guid().describe('the id of the authorisation') },
  answers: { 200: { description: 'It has ended.', schema: Authorisation } },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, params } = context;
    const { broker } = services;
    const id = UUID_PATTERN.test(params.id) ? params.id.toLowerCase() : '';
    const find = async (db: Db) => (await listMcpAuthorisations(db, who.organisationId, { id }))[0];
    const known = await find(broker.store.db);
    if (!known) throw new Refusal('not_found', 'The organisation has no such authorisation.');
    const agent = { id: known.agent_id, agent_id: known.agent_public_id };
    const change = { reason: 'mcp_client_revoked', detail: known.client_name, agent };
    const ended = await ownerChange(context, change, async (db, note) => {
      if (!(await endMcpAuthorisation(db, id, 'owner', broker.clock())))
        throw new Refusal('conflict', 'This authorisation has ended already.');
      note({ authorisation: id, client: known.client_id });
      return present(await find(db), 'authorisation');
    });
    const grants = await listGrants(broker.store.db, who.organisationId, known.agent_id);
    return json(200, shown(ended, grants, broker.clock()));
  },
});
