/** Which MCP clients were let in, by whom and as which agents; and how to put one out. */
import { z } from 'zod';
import { UUID_PATTERN } from '../../../crypto/ids.ts';
import {
  endMcpAuthorisation,
  type ListedAuthorisation,
  listMcpAuthorisations,
} from '../../../store/mcp-authorisations.ts';
import { Refusal } from '../../errors.ts';
import { instant } from '../../instant.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

const Authorisation = z
  .object({
    id: z.guid(),
    status: z.enum(['live', 'ended', 'expired']),
    agent: z.object({ id: z.guid(), agent_id: z.string(), name: z.string() }).describe('which it acts as'),
    client: z.object({
      id: z.string(),
      name: z.string().describe('as it calls itself'),
      redirect_host: z.string().describe('where its code went'),
    }),
    scopes: z.array(z.string()),
    owner_id: z.guid().describe('who let it in'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
    ended_because: z
      .enum(['owner', 'client', 'reuse'])
      .nullable()
      .describe('who ended it; reuse: one of its refresh tokens came twice, so that somebody else may have it'),
  })
  .meta({ id: 'McpAuthorisation' });

const shown = (one: ListedAuthorisation, now: number): z.output<typeof Authorisation> => ({
  id: one.id,
  status: one.ended_at !== null ? 'ended' : one.expires_at <= now ? 'expired' : 'live',
  agent: { id: one.agent_id, agent_id: one.agent_public_id, name: one.agent_name },
  client: { id: one.client_id, name: one.client_name, redirect_host: one.redirect_host },
  scopes: one.scope.split(' '),
  owner_id: one.owner_id,
  created_at: new Date(one.created_at).toISOString(),
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
  summary: 'The MCP clients that were let in, newest first; ended ones stay for 90 days.',
  answers: {
    200: { description: 'The authorisations.', schema: z.object({ authorisations: z.array(Authorisation) }) },
  },
  errors: [],
  handle: async ({ governor: { broker }, who }) => {
    const found = await listMcpAuthorisations(broker.store.db, who.organisationId);
    return json(200, { authorisations: found.map((one) => shown(one, broker.clock())) });
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
    const { governor, who, params } = context;
    const { broker } = governor;
    const id = UUID_PATTERN.test(params.id!) ? params.id!.toLowerCase() : '';
    const find = async (db = broker.store.db as Parameters<typeof listMcpAuthorisations>[0]) =>
      (await listMcpAuthorisations(db, who.organisationId)).find((one) => one.id === id);
    const known = await find();
    if (!known) throw new Refusal('not_found', 'The organisation has no such authorisation.');
    const agent = { id: known.agent_id, agent_id: known.agent_public_id };
    const change = { reason: 'mcp_client_revoked', detail: known.client_name, agent };
    const ended = await ownerChange(context, change, async (db, note) => {
      if (!(await endMcpAuthorisation(db, id, 'owner', broker.clock())))
        throw new Refusal('conflict', 'This authorisation has ended already.');
      note({ authorisation: id, client: known.client_id });
      return (await find(db))!;
    });
    return json(200, shown(ended, broker.clock()));
  },
});
