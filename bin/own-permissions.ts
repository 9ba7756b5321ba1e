/** Reads an agent's permissions, and whether it is halted, from the broker. */
import type { Halt } from '../mcp/client/action.ts';
import { type AgentClient, type BrokerError, connectAgent } from '../mcp/client/connect-agent.ts';
import type { Permissions } from '../mcp/client/permissions.ts';
import type { Profile } from '../mcp/profile.ts';
import { CommandFailed } from './failure.ts';
import { PROGRAM } from './program-name.ts';

const TIMEOUT_MS = 3_000;

/** `permissions`: undefined when the broker does not report them. `refused`: why the broker rejects the agent's token. */
type Standing = { permissions?: Permissions | undefined; halt?: Halt | undefined; refused?: BrokerError };

async function askStanding(profile: Profile): Promise<Standing> {
  const agent = agentOf(profile);
  try {
    const told = await agent.permissions(AbortSignal.timeout(TIMEOUT_MS));
    if (told.ok) return { permissions: told.value.permissions };
    return told.error.status === 401 ? { refused: told.error } : { halt: (told.error.body as { halt?: Halt }).halt };
  } catch {
    return {};
  }
}

/** Returns a client for the agent. Throws CommandFailed where the profile's key cannot sign, or its address is invalid. */
function agentOf(profile: Profile): AgentClient {
  try {
    return connectAgent(profile);
  } catch (error) {
    throw new CommandFailed(`${(error as Error).message.replace(/\.?$/, '.')} Nothing was written.`);
  }
}

/** Returns the permissions of this profile's agent; undefined when the broker does not report them. */
export const ownPermissions = async (profile: Profile): Promise<Permissions | undefined> =>
  (await askStanding(profile)).permissions;

/**
 * Returns the permissions, and a sentence for the person where the agent is refused temporarily: suspended, stopped by a breaker, or because of its
 * clock.
 *
 * @throws CommandFailed when the agent is revoked, expired, or unknown by this key: it can never call again. `instead`: what to do, as a sentence
 */
export async function standingOfAgent(
  profile: Profile,
  instead: string,
): Promise<Pick<Standing, 'permissions'> & { warning?: string }> {
  const { permissions, halt, refused } = await askStanding(profile);
  // A deleted agent gets the same answer: the broker does not distinguish the two.
  if (refused?.code === 'invalid_signature')
    throw new CommandFailed(
      `The broker at ${profile.url} does not know the agent ${profile.agentId} by this key: it was deleted, or has another key. Nothing was written. ${instead}`,
    );
  if (refused !== undefined)
    return {
      permissions,
      warning: `Warning: the broker refuses the agent ${profile.agentId}: ${refused.message} "${PROGRAM} doctor" looks further.`,
    };
  if (halt === undefined) return { permissions };
  const why = halt.detail === null ? halt.cause : `${halt.cause}: ${halt.detail}`;
  const state = halt.state === 'breaker_open' ? 'stopped by a circuit breaker' : halt.state;
  const says = `The agent ${profile.agentId} is ${state} (${why})`;
  if (halt.state === 'revoked')
    throw new CommandFailed(`${says}: every call of it is refused. Nothing was written. ${instead}`);
  const until = halt.recoverable_by === 'owner' ? 'until an owner resumes it' : 'for now';
  return { permissions, warning: `Warning: ${says}: every call of it is refused ${until}.` };
}
