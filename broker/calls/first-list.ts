/** The first call to an MCP server: it cannot be decided before the server has said what its tools do. */

import type { Recording } from '../audit/record.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { unreachable } from '../egress/unreachable.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { AuditRow } from '../store/audit.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { Call } from './call.ts';
import type { Concluded, Credentials, Forwarded } from './forward.ts';
import { forwardFresh } from './forward-fresh.ts';
import { type McpPassage, whyUnlisted } from './forward-mcp.ts';
import type { McpManners } from './mcp-manners.ts';

/** The tools are on file, and who asked for the call is as they are now; or what becomes of the call without a list. */
export type FirstList = { kind: 'listed'; who: AgentPrincipal } | Concluded;

/** The server has answered, and nobody is told what. */
const LISTED: Forwarded = {
  kind: 'answer',
  status: 200,
  read: { kind: 'data', data: 'null', redacted: false, bytes: 0 },
};

/**
 * Asks a server for its tools before a call is decided, and puts them on file. Whatever goes wrong comes out as an answer:
 * the server was asked, so the call has to have a row.
 */
export async function listFirst(
  services: Recording & { credentials: Credentials; facts: FactsReader; manners: McpManners; oauth: OAuthConnections },
  call: Call,
  passage: McpPassage,
): Promise<FirstList> {
  const { platform, connection, credential } = passage;
  let isListed = false;
  try {
    const listed = await services.recorder.readFirst(rowOfList(call), () =>
      forwardFresh(
        services,
        platform.manifest,
        call,
        connection,
        credential,
        async (fresh) => {
          const unlisted = await whyUnlisted(services, call, { ...passage, credential: fresh });
          isListed = unlisted === undefined;
          return unlisted ?? LISTED;
        },
        // Whatever the list says, the call is decided again after it.
        async () => undefined,
      ),
    );
    return isListed || listed.kind === 'held_back' || listed.kind === 'denied_meanwhile'
      ? { kind: 'listed', who: await anew(services, call) }
      : listed;
  } catch (error) {
    services.broker.log.error(
      { err: error, auditId: call.row.id },
      'the tools of an MCP server could not be looked at',
    );
    return unreachable('tools_unknown', false);
  }
}

/** What is on record if the process dies meanwhile: the tools were asked for, and no tool was called. It fits into a note. */
function rowOfList({ row }: Call): AuditRow {
  return { ...row, method: 'GET', path: '/tools', decision: null, flags: null, agent_reason: null };
}

/** Who calls, as of now: meanwhile the agent may have been suspended, have lost its grant, or have come to its end. */
export async function anew({ facts }: { facts: FactsReader }, { who, action }: Call): Promise<AgentPrincipal> {
  const rows = await facts(who.agent.agent_id, action.platform, who.source);
  const agent = rows[0] ?? { ...who.agent, status: 'revoked' as const };
  return { ...who, agent, rows: rows.length > 0 ? rows : [agent] };
}
