/** Tools of an MCP platform: those that an owner accepted, those that the server offers now, and the quarantined ones. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { readManifest } from '../../facts/stored-manifests.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { effectOf, type ToolEffect, toolState } from '../../policy/tool.ts';
import { present } from '../../runtime/present.ts';
import { acceptOffered, findTool, listTools, type ToolPlace } from '../../store/mcp-tools.ts';
import { listPlatforms } from '../../store/platforms.ts';
import type { Db } from '../../store/store.ts';
import { readStored, StoredObject } from '../../store/stored-json.ts';
import type { McpToolTable } from '../../store/tables/platforms.ts';
import { ChangeRefused } from '../refused.ts';
import { askServer } from './ask-mcp-server.ts';

/** `accepted`: the definition that agents see; `offered`: the server's current one. */
export type ReadTool = ReturnType<typeof readTool>;

export type ToolsOfServer = { server: string; tools: ReadTool[] };

/** Lists all tools that the broker has seen, by name. Throws ChangeRefused when there is no such platform, or it is not an MCP server. */
export async function readTools(db: Db, organisationId: string, platformId: string): Promise<ToolsOfServer> {
  return await toolsAt(db, await placeOf(db, organisationId, platformId));
}

/** Requests the tools from the server; the first list is accepted as a whole. Throws ChangeRefused, also when the server does not answer. */
export async function refreshTools(
  services: Parameters<typeof askServer>[0],
  organisationId: string,
  platformId: string,
): Promise<ToolsOfServer> {
  const { db } = services.broker.store;
  const place = await placeOf(db, organisationId, platformId);
  const asked = await askServer(services, place);
  if (!asked.ok) throw new ChangeRefused(asked.sent ? 'upstream_unreachable' : 'conflict', asked.detail);
  return await toolsAt(db, place);
}

/** `hash`: hash of the tool that was shown. `effect`: the owner's classification; undefined: what the tool declares. */
export type Accepting = { platformId: string; name: string; hash: string; effect: ToolEffect | undefined };

/**
 * Accepts a tool as it was shown: in force from the next call. If it has changed since, nothing is accepted.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function acceptTool(
  services: Changing,
  by: ChangingOwner,
  { platformId, name, hash, effect: said }: Accepting,
): Promise<ReadTool> {
  const { store, clock } = services.broker;
  const place = await placeOf(store.db, by.owner.organisation_id, platformId);
  if (!(await findTool(store.db, place, name))) throw new ChangeRefused('not_found', 'The server has no such tool.');
  const accepted = await recordInTurn(
    services,
    by,
    { reason: 'mcp_tool_accepted', platform: platformId },
    async (tx, note) => {
      const before = readTool(present(await findTool(tx, place, name), 'tool'));
      const { effect, effectBy } = effectAfter(before, said, by.owner.id);
      const row = await acceptOffered(tx, place, { name, hash, by: by.owner.id, effect, effectBy }, clock());
      if (!row)
        throw new ChangeRefused(
          'conflict',
          'The definition of the tool has changed since it was shown: review it again.',
        );
      note({ tool: name, server: place.server, hash, effect });
      return row;
    },
  );
  return readTool(accepted);
}

/** An owner's classification is kept; a tool's own one follows its definition. */
function effectAfter(before: ReadTool, said: ToolEffect | undefined, by: string) {
  if (said !== undefined) return { effect: said, effectBy: by };
  if (before.effect_by !== null) return { effect: before.effect, effectBy: before.effect_by };
  return { effect: effectOf(before.offered), effectBy: null };
}

async function placeOf(
  db: Db,
  organisationId: string,
  platformId: string,
): Promise<ToolPlace & { manifest: Manifest }> {
  const stored = (await listPlatforms(db, organisationId)).find((one) => one.platform_id === platformId);
  const manifest = stored && readManifest(stored);
  if (manifest?.kind !== 'mcp')
    throw new ChangeRefused('not_found', 'The organisation has no such platform of kind mcp.');
  return { organisationId, platformId, server: manifest.base_url, manifest };
}

async function toolsAt(db: Db, place: ToolPlace): Promise<ToolsOfServer> {
  return { server: place.server, tools: (await listTools(db, place)).map(readTool) };
}

function readTool(row: McpToolTable) {
  const definition = (text: string) => readStored(StoredObject, text, `definition of the tool ${row.name}`);
  return {
    ...row,
    state: toolState(row),
    accepted: row.accepted === null ? null : definition(row.accepted),
    offered: definition(row.offered),
  };
}
