/** Sends an allowed call, to its platform or MCP server, with a credential that works. */
import type { Ask, StandingApproval, Verdict } from '../policy/facts.ts';
import { toolOf } from '../policy/tool.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';
import type { Connected } from './connect.ts';
import { decideAgain } from './decide-again.ts';
import { forward } from './forward.ts';
import { type Fresh, forwardFresh } from './forward-fresh.ts';
import { forwardGit } from './forward-git.ts';
import { forwardMcp } from './forward-mcp.ts';

/** `ask`, `verdict`: how it was decided. `isApproved`: a person approved it, which stands in for a hold. `standing`: was used for it. */
type Allowed = Extract<Connected, { ok: true }> & {
  ask: Ask;
  verdict: Verdict;
  isApproved: boolean;
  standing: StandingApproval | undefined;
};

export async function sendCall(
  services: CallServices,
  call: Call,
  { platform, connection, credential, ask, verdict, isApproved, standing }: Allowed,
): Promise<Fresh> {
  const { grant } = verdict;
  if (connection.personTokens !== undefined) services.tokenUses.note(connection.personTokens);
  return await forwardFresh(
    services,
    call,
    { platform, connection, credential },
    {
      send: (fresh) => {
        const { git } = call;
        if (git) return forwardGit(services.broker, { ...call, git }, { ...platform, connection }, fresh);
        return platform.rules.kind === 'mcp'
          ? forwardMcp(services, call, { platform, connection, credential: fresh, grant }, toolOf(call.path))
          : forward(services.broker, platform, call, connection, fresh);
      },
      decideAgain: () => decideAgain(services, call, ask, { connectionId: connection.id, isApproved, standing }),
    },
  );
}
