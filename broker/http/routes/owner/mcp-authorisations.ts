/** Authorised MCP clients: who authorised them, as which agents, and how to revoke them. */

import { z } from 'zod';
import { countMcpClients, endMcpClient, listMcpClients, type ReadMcpClient } from '../../../admin/mcp-clients.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { AgentId } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { cursorInTime, cursorParameter, wholeNumber } from '../../query.ts';
import { ScopesOn } from '../../registration-request.ts';
import { instant, json, longJson } from '../../reply.ts';
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
      redirect_host: z.string().describe('the redirect URI to which its authorization code was sent'),
    }),
    scopes: z.array(z.string()).describe('the scopes of its tokens'),
    grants: ScopesOn.describe('what its agent may do now'),
    owner_id: z.guid().describe('the owner who authorised it'),
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
        'who ended it; reuse: one of its refresh tokens was used twice, so somebody else may have it; agent: its agent was revoked',
      ),
  })
  .meta({ id: 'McpAuthorisation' });

const shown = (one: ReadMcpClient): z.output<typeof Authorisation> => ({
  id: one.id,
  status: one.status,
  agent: { id: one.agent_id, agent_id: one.agent_public_id, name: one.agent_name, status: one.agent_status },
  client: { id: one.client_id, name: one.client_name, redirect_host: one.redirect_host },
  scopes: one.scope.split(' '),
  grants: one.grants,
  owner_id: one.owner_id,
  owner_email: one.owner_email,
  created_at: new Date(one.created_at).toISOString(),
  last_used_at: instant(one.last_token_at),
  expires_at: new Date(one.expires_at).toISOString(),
  ended_at: instant(one.ended_at),
  ended_because: one.ended_because,
});

/** GET /owner/mcp-authorisations */
export const ownerMcpAuthorisations = route({
  method: 'GET',
  path: '/owner/mcp-authorisations',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.mcp_authorisations.list',
  summary: 'The MCP clients that were authorised, newest first; ended ones stay for 90 days.',
  query: z.object({
    state: z
      .enum(['live', 'over'], 'one of live, over')
      .optional()
      .describe('only those that have access, or only the others'),
    agent: AgentId.max(64).toLowerCase().optional().describe('the uuid or agent id of the agent as which they act'),
    cursor: cursorParameter.optional(),
    limit: wholeNumber(1, 200).optional().describe('how many at most; 50 when left out'),
  }),
  answers: {
    200: {
      description: 'Without parameters all of them; with any of them a page.',
      schema: z.object({
        authorisations: z.array(Authorisation),
        next: z.string().nullable().optional().describe('for `cursor`; null: this is the last page'),
        count: z.object({ live: z.int(), over: z.int() }).optional().describe('how many there are, on all pages'),
      }),
    },
  },
  errors: ['invalid_request'],
  handle: async ({ services: { broker }, who: { organisationId }, query }) => {
    if (Object.values(query).every((value) => value === undefined)) {
      const { clients } = await listMcpClients(broker, organisationId);
      return await longJson(200, { authorisations: clients.map(shown) });
    }
    const { state, agent, cursor: after, limit = 50 } = query;
    const isLive = state === undefined ? undefined : state === 'live';
    const { clients, end } = await listMcpClients(broker, organisationId, { agent, isLive, after, limit });
    return json(200, {
      authorisations: clients.map(shown),
      next: end ? cursorInTime(end) : null,
      count: await countMcpClients(broker, organisationId, agent),
    });
  },
});

/** DELETE /owner/mcp-authorisations/{id}: its tokens are refused from the next call on, on every replica. */
export const endOwnerMcpAuthorisation = route({
  method: 'DELETE',
  path: '/owner/mcp-authorisations/{id}',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.mcp_authorisations.end',
  summary: 'Ends the authorisation of an MCP client. Its agent stays, with its grants.',
  params: { id: z.guid().describe('the id of the authorisation') },
  answers: { 200: { description: 'It has ended.', schema: Authorisation } },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params } = context;
    return json(200, shown(await endMcpClient(services, changingOwner(context), storedUuid(params.id))));
  },
});
