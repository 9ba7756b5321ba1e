/**
 * The tools of an MCP server against what was accepted of them. The first list that a server gives is accepted as it is:
 * the owner has just connected it. From then on a tool that is new, or that is not what it was, waits for an owner, so
 * that no server slips a model other words, or other arguments, under a name that was looked at (MC-04).
 */

import { eventRow } from '../audit/event-row.ts';
import type { Recording } from '../audit/recorder.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import { correlationId as newCorrelationId, uuidv7 } from '../crypto/ids.ts';
import type { CredentialPatterns } from '../egress/credential-patterns.ts';
import type { JsonObject } from '../policy/facts.ts';
import { effectOf, TOOL_NAME, type ToolState, toolDefinition, toolState } from '../policy/tool.ts';
import { lockOrganisation } from '../store/governance.ts';
import { forgetTools, listTools, putOffered, type ToolPlace } from '../store/mcp-tools.ts';
import type { McpToolTable } from '../store/tables/platforms.ts';
import { rollback } from '../store/transaction.ts';

/**
 * Beyond so many known tools of one server, new ones are not even noted: a server must not fill the store. Those that nobody accepted and that it
 * lists no more make room, and not before they were there for FORGOTTEN_MS, so that it cannot have the store written at each call.
 */
const MOST_KNOWN = 2_000;
const FORGOTTEN_MS = 3_600_000;
/** What a held back tool says otherwise once more is noted so often at the most: some servers say something else at each call, such as the hour. */
const AGAIN_MS = 60_000;
/** How many names an event lists. */
const MOST_NAMED = 20;

/** `not_mcp`: a name is there twice, or text is broken. `credential_echoed`: the credential is in what would be kept. */
type NoTools = 'not_mcp' | 'credential_echoed';

/**
 * The listed tools that a call can name, as rows; and what they say. Definitions are kept, and shown to owners,
 * agents and their models. So one with the credential in it is refused: with another text in its place it would be another
 * tool than the server's, and one that might well be accepted and called.
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

/** What a server offers now, each tool with what is known of it. */
export type OfferedTools = ReadonlyMap<string, McpToolTable & { state: ToolState }>;

/**
 * Compares a list with what is on file, and notes on file, with an event on record, what is another than before.
 *
 * @param tools.patterns of the credential that the server was asked with
 * @param tools.forOwner asked for by an owner, who sees what the server says now
 * @returns why the list cannot be taken for one
 * @throws AuditUnavailable when the difference could not be recorded
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
  const known = await listTools(broker.store.db, place);
  if (known.length === 0 && offered.length > 0) return shown(offered, await acceptFirst(services, place, offered));
  const different = offered.filter(differingFrom(known));
  const differing = tools.forOwner ? different : different.filter(isNews(known, now));
  if (differing.length > 0) await noteDifferences(services, place, { offered, differing });
  return shown(offered, differing.length > 0 ? await listTools(broker.store.db, place) : known);
}

function differingFrom(known: readonly McpToolTable[]): (row: McpToolTable) => boolean {
  const hashes = new Map(known.map(({ name, offered_hash }) => [name, offered_hash]));
  return ({ name, offered_hash }) => hashes.get(name) !== offered_hash;
}

/** Whether a tool that differs from what is on file is to be noted now. Whatever is on file, it is called by what the list says. */
function isNews(known: readonly McpToolTable[], now: number): (row: McpToolTable) => boolean {
  const byName = new Map(known.map((row) => [row.name, row]));
  return ({ name, offered_hash }) => {
    const before = byName.get(name);
    if (before === undefined || toolState(before) === 'accepted' || before.accepted_hash === offered_hash) return true;
    return Math.abs(now - before.offered_at) >= AGAIN_MS;
  };
}

/** By the list and not by the store, where another process may have noted another list by now. */
function shown(offered: readonly McpToolTable[], known: readonly McpToolTable[]): OfferedTools {
  const byName = new Map(known.map((row) => [row.name, row]));
  return new Map(
    offered.map((row) => {
      const { offered: text, offered_hash } = row;
      const now = { ...(byName.get(row.name) ?? row), offered: text, offered_hash };
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
  await onRecord(services, place, 'mcp_tools_found', { tools: offered.length }, async (db) => {
    await lockOrganisation(db, place.organisationId);
    // Of two processes that ask at once, the first list is the first.
    if ((await listTools(db, place)).length > 0) return false;
    await putOffered(db, accepted);
    return true;
  });
  return await listTools(db, place);
}

async function noteDifferences(
  services: Recording,
  place: ToolPlace,
  { offered, differing }: { offered: readonly McpToolTable[]; differing: readonly McpToolTable[] },
) {
  await onRecord(services, place, 'mcp_tools_changed', {}, async (db, note) => {
    await lockOrganisation(db, place.organisationId);
    const known = await listTools(db, place);
    const fresh = differing.filter(differingFrom(known));
    if (fresh.length === 0) return false;
    const isKnown = new Set(known.map(({ name }) => name));
    const unknown = fresh.filter(({ name }) => !isKnown.has(name));
    const room = Math.max(0, MOST_KNOWN - known.length);
    const forgotten = unknown.length > room ? ofNoUse(known, offered, services.broker.clock()) : [];
    await forgetTools(db, place, forgotten);
    const added = unknown.slice(0, room + forgotten.length);
    const changed = fresh.filter(({ name }) => isKnown.has(name));
    await putOffered(db, [...added, ...changed]);
    const states = new Map(known.map((row) => [row.name, row.accepted_hash]));
    const heldBack = [...added, ...changed].filter((row) => states.get(row.name) !== row.offered_hash);
    const names = (rows: readonly McpToolTable[]) => rows.slice(0, MOST_NAMED).map(({ name }) => name);
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

/** The names of tools that nobody accepted, and that are offered no more. */
function ofNoUse(known: readonly McpToolTable[], offered: readonly McpToolTable[], now: number): string[] {
  const isOffered = new Set(offered.map(({ name }) => name));
  return known
    .filter((row) => row.accepted_hash === null && !isOffered.has(row.name) && row.offered_at <= now - FORGOTTEN_MS)
    .map(({ name }) => name);
}

/** Answers whether it wrote anything. */
type Noting = (db: Parameters<typeof putOffered>[0], note: (facts: JsonObject) => void) => Promise<boolean>;

/** An event of the platform, which nobody of ours made, in one transaction with what it is about. */
async function onRecord(
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
