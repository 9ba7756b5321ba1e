/** What an agent may do now, and whether it is halted, as the broker tells it. */
import type { Halt } from '../mcp/client/action.ts';
import { connectAgent } from '../mcp/client/connect-agent.ts';
import type { Permissions } from '../mcp/client/permissions.ts';
import type { Profile } from '../mcp/profile.ts';
import { CommandFailed } from './failure.ts';

const TIMEOUT_MS = 3_000;

/** `permissions`: undefined where the broker does not tell. */
type Standing = { permissions?: Permissions | undefined; halt?: Halt | undefined };

async function askStanding(profile: Profile): Promise<Standing> {
  try {
    const told = await connectAgent(profile).permissions(AbortSignal.timeout(TIMEOUT_MS));
    return told.ok ? { permissions: told.value.permissions } : { halt: (told.error.body as { halt?: Halt }).halt };
  } catch {
    return {};
  }
}

/** Of the agent of this profile; undefined where the broker does not tell. */
export const ownPermissions = async (profile: Profile): Promise<Permissions | undefined> =>
  (await askStanding(profile)).permissions;

/**
 * The same, and a sentence for the person where the agent is halted and may go on later: suspended, or stopped by a breaker.
 *
 * @throws CommandFailed for one that is revoked or expired: it never calls again. `instead`: what to do, as a sentence
 */
export async function standingOfAgent(
  profile: Profile,
  instead: string,
): Promise<Pick<Standing, 'permissions'> & { warning?: string }> {
  const { permissions, halt } = await askStanding(profile);
  if (halt === undefined) return { permissions };
  const why = halt.detail === null ? halt.cause : `${halt.cause}: ${halt.detail}`;
  const state = halt.state === 'breaker_open' ? 'stopped by a circuit breaker' : halt.state;
  const says = `The agent ${profile.agentId} is ${state} (${why})`;
  if (halt.state === 'revoked')
    throw new CommandFailed(`${says}: every call of it is refused. Nothing was written. ${instead}`);
  const until = halt.recoverable_by === 'owner' ? 'until an owner resumes it' : 'for now';
  return { permissions, warning: `Warning: ${says}: every call of it is refused ${until}.` };
}
