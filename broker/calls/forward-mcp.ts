/** Sends an allowed call to an MCP server: lists and checks its tools, then calls the one, once. */

import type { Recording } from '../audit/recorder.ts';
import type { Broker, Uses } from '../broker.ts';
import { readBuild } from '../build.ts';
import type { Received } from '../egress/answers/answer.ts';
import { readBearerChallenge } from '../egress/bearer-challenge.ts';
import { type McpClient, makeMcpClient } from '../egress/mcp/client.ts';
import { isOwnFailure, type McpAnswer } from '../egress/mcp/protocol.ts';
import { unreachable } from '../egress/unreachable.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { Grant, JsonObject } from '../policy/facts.ts';
import { classify } from '../policy/operation.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import { ATTESTATION_HEADER, ATTESTATION_META_KEY, attest } from './attestation.ts';
import { type Call, familyOf, holderOf, idleMsOf } from './call.ts';
import type { Credential } from './credentials.ts';
import { restPlatform, traceHeaders } from './forward.ts';
import type { Forwarded } from './forwarded.ts';
import { listAll } from './mcp/list.ts';
import type { McpSessions } from './mcp/sessions.ts';
import { quarantine } from './mcp/tool-on-file.ts';
import { compareTools, type OfferedTools } from './mcp/tools.ts';

const { version } = readBuild();

/**
 * What a request to a server needs. `grant`: the grant that the decision used. `attested`: how many requests of the tool call were attested
 * so far.
 */
export type McpRequest = {
  platform: CompiledPlatform;
  connection: ConnectionFacts;
  credential: Credential;
  grant: Grant | undefined;
  attested: { turns: number };
};

/** The tools that a server offers, compared with those on file, or the answer because of which they could not be read. */
type Compared = { ok: true; offered: OfferedTools } | { ok: false; answer: McpAnswer };

/** Calls a tool; without `tool`, lists the tools of the call's scope. The credential is removed from every answer. */
export async function forwardMcp(
  services: Recording & { mcpSessions: McpSessions } & Uses<'did' | 'keys' | 'outbound'>,
  call: Call,
  request: McpRequest,
  tool: string | undefined,
): Promise<Forwarded> {
  const { platform } = request;
  const reader = readerOf(services.broker, call, request, call.mask);
  return await withMcpClient(services, call, request, tool, async (client, meta) => {
    const compared = await compareOffered(services, call, request, client);
    if (!compared.ok)
      return tool === undefined
        ? await resultOf(compared.answer, reader)
        : await unlistedResult(compared.answer, reader);
    // Accepted definitions are not masked.
    const listed = readerOf(services.broker, call, request);
    if (tool === undefined) return await listed(200, JSON.stringify(listing(compared.offered, call, platform)));
    const offered = compared.offered.get(tool);
    if (offered?.state !== 'accepted') return { kind: 'quarantined', detail: quarantine(tool, offered?.state) };
    const { inputSchema, execution } = readStored(StoredObject, offered.offered, 'tool');
    const data = (call.action.data as JsonObject | undefined) ?? {};
    return await resultOf(await client.call({ name: tool, inputSchema, execution }, data, meta), reader);
  });
}

/** Puts the tools of a server on file before a decision, when none are known yet. Returns the failure if that is not possible. */
export async function whyUnlisted(
  services: Recording & { mcpSessions: McpSessions } & Uses<'did' | 'keys' | 'outbound'>,
  call: Call,
  request: McpRequest,
): Promise<Forwarded | undefined> {
  return await withMcpClient(services, call, request, undefined, async (client) => {
    const compared = await compareOffered(services, call, request, client);
    return compared.ok
      ? undefined
      : await unlistedResult(compared.answer, readerOf(services.broker, call, request, call.mask));
  });
}

async function withMcpClient<Said>(
  { broker, mcpSessions }: Uses<'did' | 'clock' | 'keys' | 'outbound'> & { mcpSessions: McpSessions },
  call: Call,
  { platform: { manifest }, connection, credential, grant, attested }: McpRequest,
  tool: string | undefined,
  speak: (client: McpClient, meta: () => JsonObject) => Promise<Said>,
): Promise<Said> {
  const mode = manifest.attestation ?? 'off';
  const about = { server: manifest.base_url, scopes: grant?.scopes ?? [] };
  // Created when the request is sent: listing may take as long as an attestation is valid.
  const attestation = (called: string | undefined, turn: number) =>
    attest(broker, call, { ...about, tool: called, turn });
  // The header and `_meta` of one call carry the same attestation; a call that is sent again, as a task, gets a new one, because servers
  // accept each only once.
  let ofTool: string | undefined;
  const attestationOf = (rpc: string): string => {
    if (rpc !== 'tools/call') return attestation(undefined, 1);
    ofTool ??= attestation(tool, ++attested.turns);
    return ofTool;
  };
  const holder = { agentId: call.who.agent.id, server: manifest.base_url };
  const trace = traceHeaders(manifest, call);
  const server = {
    platform: restPlatform(manifest),
    credential: credential.secret,
    clock: broker.clock,
    connectionKey: connection.id,
  };
  const client = makeMcpClient(
    broker.outbound,
    {
      ...server,
      family: familyOf(call.who),
      lease: call.lease,
      headers: { ...call.headers, ...trace },
      ...((mode === 'header' || mode === 'both') && {
        headersOf: (rpc) => ({ [ATTESTATION_HEADER.toLowerCase()]: attestationOf(rpc) }),
      }),
      session: mcpSessions.find(credential, holder),
      idleMs: idleMsOf(connection, manifest),
    },
    version,
  );
  try {
    const inMeta = mode === 'meta' || mode === 'both';
    return await speak(client, () => {
      ofTool = undefined;
      return { ...trace, ...(inMeta && { [ATTESTATION_META_KEY]: attestationOf('tools/call') }) };
    });
  } finally {
    const session = client.session();
    mcpSessions.keep(
      credential,
      holder,
      session,
      () => makeMcpClient(broker.outbound, { ...server, headers: {}, session }, version).end,
    );
  }
}

async function compareOffered(
  services: Recording,
  { record, action }: Call,
  { platform: { manifest }, credential: { patterns } }: McpRequest,
  client: McpClient,
): Promise<Compared> {
  const place = { organisationId: record.organisationId, platformId: action.platform, server: manifest.base_url };
  try {
    const listed = await listAll(client);
    if (!listed.ok) return listed;
    const offered = await compareTools(services, place, { listed: listed.tools, patterns });
    return typeof offered === 'string'
      ? { ok: false, answer: unreachable(offered, true, 'list') }
      : { ok: true, offered };
  } catch (error) {
    // Must not throw: the call has its own audit row with its outcome, which is known (the tool was not called).
    services.broker.log.error({ err: error, platform: place.platformId }, 'tools could not be compared');
    return { ok: false, answer: unreachable('tools_unknown', false) };
  }
}

/** Lists the tools of the call's scope for an agent: accepted definitions only, never what the server has sent since. */
function listing(offered: OfferedTools, { action }: Call, { rules }: CompiledPlatform) {
  const covered = [...offered.values()].filter(({ name }) => {
    const ask = { method: 'POST' as const, path: `/tools/${name}`, query: '', headers: {}, body: undefined };
    const found = classify(rules, ask);
    return found.kind === 'classified' && found.scopes.includes(action.scope);
  });
  return {
    tools: covered
      .filter(({ state }) => state === 'accepted')
      .map(({ name, offered: definition, effect }) => ({
        ...readStored(StoredObject, definition, 'tool'),
        endpoint: `/tools/${name}`,
        effect,
      })),
    held_back: covered.filter(({ state }) => state !== 'accepted').map(({ name, state }) => ({ name, state })),
  };
}

/** Builds the result from a server's answer, with the credential removed. A string is the JSON text of a body. */
type Reader = (status: number, json: string, received?: Received) => Promise<Forwarded>;

const JSON_HEADERS = { 'content-type': 'application/json' };

const readerOf =
  (
    { outbound }: Pick<Broker, 'outbound'>,
    { who }: Call,
    { credential: { patterns } }: McpRequest,
    mask?: Call['mask'],
  ): Reader =>
  async (status, json, received = { status, headers: JSON_HEADERS, body: Buffer.from(json) }) => ({
    kind: 'answer',
    status,
    read: await outbound.read(received, patterns, holderOf(who), mask && { ...mask, isToolResult: true }),
    ...(status === 403 && missingScopes(received)),
  });

/** Scopes that the token lacks for a refused request; empty when it was refused for another reason. */
function missingScopes({ headers }: Received): { wantedScopes?: readonly string[] } {
  const { error, scopes } = readBearerChallenge(headers['www-authenticate']);
  return error === 'insufficient_scope' && scopes.length > 0 ? { wantedScopes: scopes } : {};
}

/**
 * The result when the tools could not be listed. Whatever was sent, the tool was not called, so an error must not be recorded as the answer
 * of a made call. Answers about the caller (401, 403, 429) are passed on.
 */
async function unlistedResult(answer: McpAnswer, read: Reader): Promise<Forwarded> {
  if (isOwnFailure(answer)) return unreachable('tools_unlisted', false);
  const forwarded = await resultOf(answer, read);
  return forwarded.kind === 'unreachable' ? { ...forwarded, sent: false } : forwarded;
}

/** Turns a server's answer into a call's result: an MCP result as it is, a JSON-RPC error under `error`. */
async function resultOf(answer: McpAnswer, read: Reader): Promise<Forwarded> {
  if (!('kind' in answer)) return { kind: 'refused_locally', error: answer.error, detail: answer.detail };
  switch (answer.kind) {
    case 'unreachable':
      return { kind: 'unreachable', code: answer.code, detail: answer.detail, sent: answer.sent };
    case 'http':
      return await read(answer.received.status, '', answer.received);
    case 'error':
      return await read(answer.received.status, `{"error":${answer.text}}`);
    case 'result':
      return await read(answer.received.status, answer.text);
  }
}
