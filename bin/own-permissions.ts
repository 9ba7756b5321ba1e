/** What an agent may do now, as the broker tells it. */
import { connectAgent } from '../mcp/client/connect-agent.ts';
import type { Permissions } from '../mcp/client/permissions.ts';
import type { Profile } from '../mcp/profile.ts';

const TIMEOUT_MS = 3_000;

/** Of the agent of this profile; undefined where the broker does not tell. */
export async function ownPermissions(profile: Profile): Promise<Permissions | undefined> {
  try {
    const told = await connectAgent(profile).permissions(AbortSignal.timeout(TIMEOUT_MS));
    return told.ok ? told.value.permissions : undefined;
  } catch {
    return undefined;
  }
}
