/** Tools of an MCP platform: those that an owner accepted, those that the server offers now, and the quarantined ones. */

import { z } from 'zod';
import {
  acceptTool,
  type ReadTool,
  readTools,
  refreshTools,
  type ToolsOfServer,
} from '../../../admin/connections/mcp-tools.ts';
import { TOOL_EFFECTS } from '../../../policy/tool.ts';
import { changingOwner } from '../../owner-change.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const Definition = z.record(z.string(), z.unknown());
const Effect = z.enum(TOOL_EFFECTS);

const McpTool = z
  .object({
    name: z.string(),
    state: z
      .enum(['accepted', 'new', 'changed'])
      .describe('new: come since the tools were accepted; changed: not what was accepted. Neither is called'),
    effect: Effect.describe('what a call does; destroys counts as a DELETE for rules that hold or deny'),
    effect_by: z.string().nullable().describe('the owner who said so; null: what the tool says of itself'),
    accepted: Definition.nullable().describe('the description that agents receive; null when nobody has accepted it'),
    accepted_at: z.iso.datetime().nullable(),
    accepted_by: z.string().nullable().describe('the owner; null: it was in the first list of the server'),
    offered: Definition.describe("what the server says now: a stranger's words"),
    offered_at: z.iso.datetime(),
    hash: z.string().describe('of what is offered; accepting names it'),
  })
  .meta({ id: 'McpTool' });

const Tools = z.object({ server: z.string(), tools: z.array(McpTool) });

const shown = (tool: ReadTool): z.output<typeof McpTool> => ({
  name: tool.name,
  state: tool.state,
  effect: tool.effect,
  effect_by: tool.effect_by,
  accepted: tool.accepted,
  accepted_at: instant(tool.accepted_at),
  accepted_by: tool.accepted_by,
  offered: tool.offered,
  offered_at: new Date(tool.offered_at).toISOString(),
  hash: tool.offered_hash,
});

const listed = ({ server, tools }: ToolsOfServer): z.output<typeof Tools> => ({ server, tools: tools.map(shown) });

const platform = z.string().describe('the id by which agents name it');
const params = { platform };

/** GET /owner/platforms/{platform}/tools */
export const platformTools = route({
  method: 'GET',
  path: '/owner/platforms/{platform}/tools',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.platforms.tools.list',
  summary: 'The tools of an MCP platform, as far as the broker has seen them.',
  params,
  answers: { 200: { description: 'All of them, by name.', schema: Tools } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params: { platform } }) =>
    json(200, listed(await readTools(broker.store.db, who.organisationId, platform))),
});

/** POST /owner/platforms/{platform}/tools/refresh */
export const refreshPlatformTools = route({
  method: 'POST',
  path: '/owner/platforms/{platform}/tools/refresh',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'tool-refreshes', perMinute: 20, per: 'address' },
  capability: 'owner.platforms.tools.refresh',
  summary: 'Asks the server for its tools, through the default connection. The first list is accepted as it is.',
  params,
  answers: { 200: { description: 'All of them, by name.', schema: Tools } },
  errors: ['not_found', 'conflict', 'upstream_unreachable', 'audit_unavailable'],
  handle: async ({ services, who, params: { platform } }) =>
    json(200, listed(await refreshTools(services, who.organisationId, platform))),
});

const Accept = z.strictObject({
  hash: z.string().regex(/^[0-9a-f]{64}$/, 'must be the hash of the tool as it was shown'),
  effect: Effect.optional().describe('what it does, in your judgement; otherwise what it says of itself'),
});

/** POST /owner/platforms/{platform}/tools/{tool}/accept: in force from the next call. */
export const acceptPlatformTool = route({
  method: 'POST',
  path: '/owner/platforms/{platform}/tools/{tool}/accept',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.tools.accept',
  summary:
    'Accepts the displayed definition of a tool, and sets its effect. If the tool changed since, nothing is accepted.',
  params: { platform, tool: z.string().describe('the name of the tool') },
  body: Accept,
  answers: { 200: { description: 'The tool as it is now.', schema: McpTool } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body, params } = context;
    const command = { platformId: params.platform, name: params.tool, hash: body.hash, effect: body.effect };
    return json(200, shown(await acceptTool(services, changingOwner(context), command)));
  },
});
