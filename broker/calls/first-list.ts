/** The first call to an MCP server: it cannot be decided before the server has said what its tools do. */
import { unreachable } from '../outbound/unreachable.ts';
import type { Call } from './call.ts';
import type { Forwarded } from './forward.ts';
import { forwardFresh } from './forward-fresh.ts';
import { forwardMcp, type McpPassage } from './forward-mcp.ts';
import type { Governor } from './governor.ts';

/**
 * Asks a server for its tools before a call is decided, and puts them on file.
 *
 * @returns what kept them from being read, which is what becomes of the call; undefined when they are on file. Whatever goes
 *   wrong comes out as that: the server was asked, so the call has to have a row
 */
export async function listFirst(
  governor: Governor,
  call: Call,
  passage: McpPassage,
): Promise<Exclude<Forwarded, { kind: 'held_back' }> | undefined> {
  const { platform, connection, credential } = passage;
  try {
    const listed = await forwardFresh(governor, platform.manifest, call, connection, credential, (fresh) =>
      forwardMcp(governor, call, { ...passage, credential: fresh }, undefined),
    );
    return listed.kind === 'held_back' || (listed.kind === 'answer' && listed.status === 200) ? undefined : listed;
  } catch (error) {
    governor.broker.log.error(
      { err: error, auditId: call.row.id },
      'the tools of an MCP server could not be looked at',
    );
    return unreachable('tools_unknown', false);
  }
}
