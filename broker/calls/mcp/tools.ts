/**
 * Compares the tools of an MCP server with the accepted ones. The first list of a server is accepted as it is, because the owner has just
 * connected it. After that, a new or changed tool is quarantined until an owner accepts it, so that no server can give a model other words
 * or other arguments under an accepted name (MC-04).
 */

import { eventRow } from '../../audit/event-row.ts';
import type { Recording } from '../../audit/recorder.ts';
import { canonicalJson, sha256Hex } from '../../crypto/canonical.ts';
import { correlationId as newCorrelationId, uuidv7 } from '../../crypto/ids.ts';
import type { CredentialPatterns } from '../../egress/credential-search/patterns.ts';
import type { JsonObject } from '../../policy/facts.ts';
import { effectOf, TOOL_NAME, type ToolState, toolDefinition, toolState } from '../../policy/tool.ts';
import { lockOrganisation } from '../../store/governance.ts';
import {
  forgetTools,
  hasTools,
  type KnownTool,
  listKnownTools,
  putOffered,
  type ToolPlace,
} from '../../store/mcp-tools.ts';
import type { McpToolTable } from '../../store/tables/platforms.ts';
import { rollback } from '../../store/transaction.ts';

/**
 * Limit of known tools per server: further new ones are not stored, so that a server cannot fill the store. Tools that were never accepted
 * and are no longer listed make room, but only after REMOVABLE_AFTER_MS, so that a server cannot cause a write at each call.
 */
const MAX_KNOWN = 2_000;
const REMOVABLE_AFTER_MS = 3_600_000;
/**
 * A quarantined tool that changes again is stored at most this often: some servers return something else on each call, such as the time.
 */
const CHANGE_INTERVAL_MS = 60_000;
/** How many tool names one event lists. */
const MAX_NAMED = 20;

/** `not_mcp`: a duplicate name, or malformed text. `credential_echoed`: a definition contains the credential. */
type NoTools = 'not_mcp' | 'credential_echoed';

/**
 * Returns the listed tools that a call can name, as rows. Definitions are stored and shown to owners, agents and their models, so a
 * definition with the credential in it is refused: redacted it would be another tool than the server's, and might be accepted and called.
 */
function offeredRows(
  place: ToolPlace,
  { listed, patterns }: { listed: readonly JsonObject[]; patterns: CredentialPatterns },
  now: number,
): McpToolTable[] | NoTools {
  const rows = new Map<string, McpToolTable>();
  for (const tool of listed) {
    const { name } = tool;
    if (typeof name !== 'string' || !TOOL_NAME.test(name)) continue;
    if (rows.has(name)) return 'not_mcp';
    const definition = toolDefinition(tool);
    let offered: string;
    try {
      offered = canonicalJson(definition);
    } catch {
      return 'not_mcp';
    }
    if (patterns.isIn(Buffer.from(offered))) return 'credential_echoed';
    rows.set(name, {
      organisation_id: place.organisationId,
      platform_id: place.platformId,
      server: place.server,
      name,
      accepted: null,
      accepted_hash: null,
      accepted_at: null,
      accepted_by: null,
      offered,
      offered_hash: sha256Hex(offered),
      offered_at: now,
      effect: effectOf(definition),
      effect_by: null,
    });
  }
  return [...rows.values()];
}

/** The tools that a server offers now, by name, each with its stored state. The offered definition of an accepted tool is the accepted one. */
export type OfferedTools = ReadonlyMap<string, KnownTool & Pick<McpToolTable, 'offered'> & { state: ToolState }>;

/**
 * Compares a list with the stored tools, and stores the differences together with an audit event.
 *
 * @param tools.patterns of the credential that the server was called with
 * @param tools.forOwner requested by an owner, who must see the current definitions
 * @returns the compared tools, or why the list is invalid
 * @throws AuditUnavailable when the differences could not be recorded
 */
export async function compareTools(
  services: Recording,
  place: ToolPlace,
  tools: { listed: readonly JsonObject[]; patterns: CredentialPatterns; forOwner?: true },
): Promise<OfferedTools | NoTools> {
  const { broker } = services;
  const now = broker.clock();
  const offered = offeredRows(place, tools, now);
  if (typeof offered === 'string') return offered;
  const known = await listKnownTools(broker.store.db, place);
  if (known.length === 0 && offered.length > 0) return shown(offered, await acceptFirst(services, place, offered));
  const different = offered.filter(differingFrom(known));
  const differing = tools.forOwner ? different : different.filter(isWorthStoring(known, now));
  if (differing.length > 0) await noteDifferences(services, place, { offered, differing });
  return shown(offered, differing.length > 0 ? await listKnownTools(broker.store.db, place) : known);
}

function differingFrom(known: readonly KnownTool[]): (row: McpToolTable) => boolean {
  const hashes = new Map(known.map(({ name, offered_hash }) => [name, offered_hash]));
  return ({ name, offered_hash }) => hashes.get(name) !== offered_hash;
}

/** Whether a changed tool is stored now. Calls always use the definition in the list, whatever is stored. */
function isWorthStoring(known: readonly KnownTool[], now: number): (row: McpToolTable) => boolean {
  const byName = new Map(known.map((row) => [row.name, row]));
  return ({ name, offered_hash }) => {
    const before = byName.get(name);
    if (before === undefined || toolState(before) === 'accepted' || before.accepted_hash === offered_hash) return true;
    return Math.abs(now - before.offered_at) >= CHANGE_INTERVAL_MS;
  };
}

/** Builds the result from the list, not from the store, where another process may have stored a newer list by now. */
function shown(rows: readonly McpToolTable[], known: readonly KnownTool[]): OfferedTools {
  const byName = new Map(known.map((row) => [row.name, row]));
  return new Map(
    rows.map((row) => {
      const { offered, offered_hash } = row;
      const now = { ...(byName.get(row.name) ?? row), offered, offered_hash };
      return [row.name, { ...now, state: toolState(now) }];
    }),
  );
}

async function acceptFirst(services: Recording, place: ToolPlace, offered: readonly McpToolTable[]) {
  const { db } = services.broker.store;
  const accepted = offered.map((row) => ({
    ...row,
    accepted: row.offered,
    accepted_hash: row.offered_hash,
    accepted_at: row.offered_at,
  }));
  await recordEvent(services, place, 'mcp_tools_found', { tools: offered.length }, async (db) => {
    await lockOrganisation(db, place.organisationId);
    // When two processes ask concurrently, the first list stored is the accepted one.
    if (await hasTools(db, place)) return false;
    await putOffered(db, accepted);
    return true;
  });
  return await listKnownTools(db, place);
}

async function noteDifferences(
  services: Recording,
  place: ToolPlace,
  { offered, differing }: { offered: readonly McpToolTable[]; differing: readonly McpToolTable[] },
) {
  await recordEvent(services, place, 'mcp_tools_changed', {}, async (db, note) => {
    await lockOrganisation(db, place.organisationId);
    const known = await listKnownTools(db, place);
    const fresh = differing.filter(differingFrom(known));
    if (fresh.length === 0) return false;
    const isKnown = new Set(known.map(({ name }) => name));
    const unknown = fresh.filter(({ name }) => !isKnown.has(name));
    const room = Math.max(0, MAX_KNOWN - known.length);
    const forgotten = unknown.length > room ? unusedNames(known, offered, services.broker.clock()) : [];
    await forgetTools(db, place, forgotten);
    const added = unknown.slice(0, room + forgotten.length);
    const changed = fresh.filter(({ name }) => isKnown.has(name));
    await putOffered(db, [...added, ...changed]);
    const states = new Map(known.map((row) => [row.name, row.accepted_hash]));
    const heldBack = [...added, ...changed].filter((row) => states.get(row.name) !== row.offered_hash);
    const names = (rows: readonly McpToolTable[]) => rows.slice(0, MAX_NAMED).map(({ name }) => name);
    const restored = changed.filter((row) => !heldBack.includes(row));
    note({
      held_back: names(heldBack),
      count: heldBack.length,
      restored: names(restored),
      ...(forgotten.length > 0 && { forgotten: forgotten.length }),
    });
    return added.length + changed.length > 0;
  });
}

/** Names of tools that were never accepted and are no longer offered. */
function unusedNames(known: readonly KnownTool[], offered: readonly McpToolTable[], now: number): string[] {
  const isOffered = new Set(offered.map(({ name }) => name));
  return known
    .filter(
      (row) => row.accepted_hash === null && !isOffered.has(row.name) && row.offered_at <= now - REMOVABLE_AFTER_MS,
    )
    .map(({ name }) => name);
}

/** Resolves to whether it wrote anything. */
type Noting = (db: Parameters<typeof putOffered>[0], note: (facts: JsonObject) => void) => Promise<boolean>;

/** Records an event of the platform, which no user caused, in one transaction with the change it is about. */
async function recordEvent(
  { broker, recorder }: Recording,
  { organisationId, platformId, server }: ToolPlace,
  reason: string,
  facts: JsonObject,
  write: Noting,
): Promise<void> {
  const now = broker.clock();
  const row = eventRow({
    auditId: uuidv7(now),
    correlationId: newCorrelationId(),
    createdAt: now,
    instanceId: broker.instanceId,
    organisationId,
    reason,
    platform: platformId,
  });
  await recorder.record<undefined, 'nothing_new'>({
    row,
    value: undefined,
    together: async (tx) => {
      const noted: JsonObject = { server, ...facts };
      if (!(await write(tx, (more) => void Object.assign(noted, more)))) return rollback('nothing_new');
      return { flags: { mcp_tools: noted } };
    },
  });
}
