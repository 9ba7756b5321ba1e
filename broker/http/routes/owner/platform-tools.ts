/** Tools of an MCP platform: what an owner has accepted, what the server offers now, and what is held back until they look. */

import { z } from 'zod';
import { askServer } from '../../../admin/ask-mcp-server.ts';
import type { Manifest } from '../../../platforms/manifest.ts';
import type { JsonObject } from '../../../policy/facts.ts';
import { present } from '../../../policy/present.ts';
import { effectOf, TOOL_EFFECTS, toolState } from '../../../policy/tool.ts';
import { acceptOffered, findTool, listTools, type ToolPlace } from '../../../store/mcp-tools.ts';
import { listPlatforms } from '../../../store/platforms.ts';
import type { McpToolTable } from '../../../store/schema.ts';
import type { Db } from '../../../store/store.ts';
import { Refusal } from '../../errors.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
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
    accepted: Definition.nullable().describe('what agents are told; null when nobody has accepted it'),
    accepted_at: z.iso.datetime().nullable(),
    accepted_by: z.string().nullable().describe('the owner; null: it was in the first list of the server'),
    offered: Definition.describe("what the server says now: a stranger's words"),
    offered_at: z.iso.datetime(),
    hash: z.string().describe('of what is offered; accepting names it'),
  })
  .meta({ id: 'McpTool' });

const Tools = z.object({ server: z.string(), tools: z.array(McpTool) });

function shown(row: McpToolTable): z.output<typeof McpTool> {
  return {
    name: row.name,
    state: toolState(row),
    effect: row.effect,
    effect_by: row.effect_by,
    accepted: row.accepted === null ? null : JSON.parse(row.accepted),
    accepted_at: row.accepted_at === null ? null : new Date(row.accepted_at).toISOString(),
    accepted_by: row.accepted_by,
    offered: JSON.parse(row.offered),
    offered_at: new Date(row.offered_at).toISOString(),
    hash: row.offered_hash,
  };
}

/** @throws Refusal not_found */
async function placeOf(
  db: Db,
  organisationId: string,
  platformId: string,
): Promise<ToolPlace & { manifest: Manifest }> {
  const stored = (await listPlatforms(db, organisationId)).find((one) => one.platform_id === platformId);
  const manifest = stored && (JSON.parse(stored.manifest) as Manifest);
  if (manifest?.kind !== 'mcp') throw new Refusal('not_found', 'The organisation has no such platform of kind mcp.');
  return { organisationId, platformId, server: manifest.base_url, manifest };
}

async function toolsOf(db: Db, place: ToolPlace): Promise<z.output<typeof Tools>> {
  return { server: place.server, tools: (await listTools(db, place)).map(shown) };
}

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
  handle: async ({ services: { broker }, who, params: { platform } }) => {
    const { db } = broker.store;
    return json(200, await toolsOf(db, await placeOf(db, who.organisationId, platform)));
  },
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
  handle: async ({ services, who, params: { platform } }) => {
    const { db } = services.broker.store;
    const place = await placeOf(db, who.organisationId, platform);
    const asked = await askServer(services, place);
    if (!asked.ok) throw new Refusal(asked.sent ? 'upstream_unreachable' : 'conflict', asked.detail);
    return json(200, await toolsOf(db, place));
  },
});

const Accept = z.strictObject({
  hash: z.string().regex(/^[0-9a-f]{64}$/, 'must be the hash of the tool as it was shown'),
  effect: Effect.optional().describe('what it does, in your judgement; otherwise what it says of itself'),
});

/** POST /owner/platforms/{platform}/tools/{tool}/accept: in force at the very next call. */
export const acceptPlatformTool = route({
  method: 'POST',
  path: '/owner/platforms/{platform}/tools/{tool}/accept',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.platforms.tools.accept',
  summary: 'Accepts a tool as it was shown, and says what it does. If it has changed since, nothing is accepted.',
  params: { platform, tool: z.string().describe('the name of the tool') },
  body: Accept,
  answers: { 200: { description: 'The tool as it is now.', schema: McpTool } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body, params } = context;
    const { broker } = services;
    const place = await placeOf(broker.store.db, who.organisationId, params.platform);
    const name = params.tool;
    if (!(await findTool(broker.store.db, place, name))) throw new Refusal('not_found', 'The server has no such tool.');
    const change = { reason: 'mcp_tool_accepted', platform: place.platformId };
    const accepted = await ownerChange(context, change, async (db, note) => {
      const before = present(await findTool(db, place, name), 'tool');
      const { effect, effectBy } = effectAfter(before, body.effect, who.owner.id);
      const tool = { name, hash: body.hash, by: who.owner.id, effect, effectBy };
      const row = await acceptOffered(db, place, tool, broker.clock());
      if (!row) throw new Refusal('conflict', 'The tool is offered otherwise by now: look at it again.');
      note({ tool: name, server: place.server, hash: body.hash, effect });
      return row;
    });
    return json(200, shown(accepted));
  },
});

/** What an owner has said of a tool stays said; what a tool says of itself goes with its definition. */
function effectAfter(before: McpToolTable, said: McpToolTable['effect'] | undefined, by: string) {
  if (said !== undefined) return { effect: said, effectBy: by };
  if (before.effect_by !== null) return { effect: before.effect, effectBy: before.effect_by };
  return { effect: effectOf(JSON.parse(before.offered) as JsonObject), effectBy: null };
}
