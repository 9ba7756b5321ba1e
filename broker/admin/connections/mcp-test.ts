/** Tests a connection of an MCP server by listing its tools, as each call does. Nothing is stored. */
import type { Broker } from '../../broker.ts';
import { readBuild } from '../../build.ts';
import { restPlatform } from '../../calls/forward.ts';
import { listOnce } from '../../calls/mcp/list.ts';
import type { Secret } from '../../crypto/secret.ts';
import { makeMcpClient } from '../../egress/mcp/client.ts';
import type { McpAnswer } from '../../egress/mcp/protocol.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { remedyOf } from './fresh-credential.ts';

const { version } = readBuild();

export type McpTest = { ok: boolean; upstreamStatus: number | null; detail: string; sent: boolean };

/** `timeoutMs`: for all requests together. */
export async function testMcpServer(
  { outbound, clock }: Pick<Broker, 'outbound' | 'clock'>,
  manifest: Manifest,
  { connectionKey, credential, timeoutMs }: { connectionKey: string; credential: Secret; timeoutMs: number },
): Promise<McpTest> {
  const target = { platform: restPlatform(manifest), credential, clock, connectionKey, timeoutMs };
  const client = makeMcpClient(outbound, { ...target, headers: {}, session: undefined }, version);
  const listed = await listOnce(client);
  if (!listed.ok) return whyNot(listed.answer, manifest);
  const { length: count } = listed.tools;
  return {
    ok: true,
    upstreamStatus: 200,
    detail: `The server lists ${count} tool${count === 1 ? '' : 's'}.`,
    sent: true,
  };
}

function whyNot(answer: McpAnswer, manifest: Manifest): McpTest {
  if (!('kind' in answer)) {
    const isSecret = answer.error === 'credential_malformed';
    const detail = isSecret
      ? 'The stored secret cannot be sent: replace it.'
      : 'No request can be sent to the address of the server.';
    return { ok: false, upstreamStatus: null, detail, sent: false };
  }
  if (answer.kind === 'unreachable')
    return { ok: false, upstreamStatus: null, detail: answer.detail, sent: answer.sent };
  const { status } = answer.received;
  const code = answer.kind === 'error' ? `, error ${answer.code}` : '';
  const detail = `The server answered ${status}${code} when it was asked for its tools: ${meaning(status, answer.kind, manifest)}`;
  return { ok: false, upstreamStatus: status, detail, sent: true };
}

function meaning(status: number, kind: string, manifest: Manifest): string {
  if (status === 401) return `it refused the credential. ${remedyOf(manifest)}`;
  if (status === 403) return 'it refused the credential, or refuses this request from everybody.';
  if (status === 429) return 'it limits requests. Try again later.';
  if (kind === 'error') return 'it was reached, but returned no list of tools.';
  if (status === 404 || status === 405) return noServer(manifest);
  if (status >= 300 && status < 400) return 'a redirect, which calls do not follow. Check base_url.';
  return status >= 500 ? 'it was reached, but failed.' : 'this is not a response of an MCP server. Check base_url.';
}

/** Many servers still document an address of the HTTP+SSE transport of 2024-11-05, which answers no POST. */
const noServer = ({ base_url: address }: Manifest): string =>
  /\/sse\/?$/.test(new URL(address).pathname)
    ? 'the address seems to be one of the older HTTP+SSE transport, which is not supported. Most servers have another one for Streamable HTTP, such as /mcp: change base_url.'
    : 'there is no MCP server at this address. Check base_url.';
