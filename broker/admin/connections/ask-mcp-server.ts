/** Reads an MCP server's tools for an owner: not an agent's call, so it carries no attestation. */

import type { Recording } from '../../audit/recorder.ts';
import { readBuild } from '../../build.ts';
import { restPlatform } from '../../calls/forward.ts';
import { listOnce } from '../../calls/mcp/list.ts';
import { compareTools } from '../../calls/mcp/tools.ts';
import type { TokenServices } from '../../calls/token-renewal.ts';
import { makeMcpClient } from '../../egress/mcp/client.ts';
import type { McpAnswer } from '../../egress/mcp/protocol.ts';
import { unreachable } from '../../egress/unreachable.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { listConnections } from '../../store/connections.ts';
import type { ToolPlace } from '../../store/mcp-tools.ts';
import { freshCredential } from './fresh-credential.ts';

const { version } = readBuild();

/** `sent`: whether a request was sent at all. `detail`: a text of ours. */
export type AskedServer = { ok: true } | { ok: false; detail: string; sent: boolean };

/** Reads the tools through the platform's default connection, and stores new ones. Errors of the server are returned, not thrown. */
export async function askServer(
  services: Recording & TokenServices,
  place: ToolPlace & { manifest: Manifest },
): Promise<AskedServer> {
  const { broker } = services;
  const unsent = (detail: string): AskedServer => ({ ok: false, detail, sent: false });
  const { manifest, organisationId, platformId } = place;
  const connections = await listConnections(broker.store.db, organisationId);
  const connection = connections.find((one) => one.platform_id === platformId && one.is_default === 1);
  if (connection === undefined) return unsent('The platform has no default connection: connect it first.');
  const fresh = await freshCredential(services, connection, manifest);
  if (!fresh.ok) return unsent(fresh.detail);
  let { credential } = fresh;
  const list = async () => {
    const target = {
      platform: restPlatform(manifest),
      credential: credential.secret,
      clock: broker.clock,
      connectionKey: connection.id,
      headers: {},
      session: undefined,
    };
    return await listOnce(makeMcpClient(broker.outbound, target, version));
  };
  let listed = await list();
  if (!listed.ok && isUnauthorized(listed.answer) && fresh.another !== undefined) {
    // As for a call: a token that ended before its time is replaced once.
    const another = await fresh.another();
    if (!another.ok) return { ok: false, detail: another.detail, sent: true };
    credential = another.credential;
    listed = await list();
  }
  if (listed.ok) {
    const { patterns } = credential;
    const offered = await compareTools(services, place, { listed: listed.tools, patterns, forOwner: true });
    if (typeof offered !== 'string') return { ok: true };
    const detail =
      offered === 'not_mcp'
        ? 'The server lists a duplicate tool, or one with invalid text.'
        : unreachable(offered, true).detail;
    return { ok: false, detail, sent: true };
  }
  const { answer } = listed;
  if (!('kind' in answer)) return unsent('The stored secret cannot be sent: replace it.');
  const detail =
    answer.kind === 'unreachable'
      ? answer.detail
      : `The server answered ${answer.kind === 'result' ? 'without a list of tools' : `with status ${answer.received.status}`} when it was asked for its tools.`;
  return { ok: false, detail, sent: true };
}

const isUnauthorized = (answer: McpAnswer): boolean =>
  'kind' in answer && answer.kind !== 'unreachable' && answer.received.status === 401;
