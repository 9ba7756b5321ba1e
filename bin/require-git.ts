/** Whether git would be of use to an agent, as the broker says. */
import { agentClient } from '../mcp/client/agent-client.ts';
import type { Permissions } from '../mcp/client/permissions.ts';
import { signedSend } from '../mcp/client/signed-send.ts';
import { agentSigner } from '../mcp/client/signer.ts';
import type { Profile } from '../mcp/profile.ts';
import { CommandFailed } from './failure.ts';
import { PROGRAM } from './program-name.ts';
import { commandLine } from './server-entry.ts';

const TIMEOUT_MS = 3_000;
const PLATFORM = 'codehost';
const SCOPES = [`${PLATFORM}:contents.read`, `${PLATFORM}:contents.write`];

/**
 * Passes where the agent may clone or push something, and where the broker does not answer, because nothing is known then.
 *
 * @throws CommandFailed with what an owner can do
 */
export async function requireGit(profile: Profile, repositories: readonly string[]): Promise<void> {
  const permissions = await permissionsOf(profile);
  const platform = permissions?.platforms.find(({ platformId }) => platformId === PLATFORM);
  const scopes = [platform, ...(platform?.connections ?? [])].flatMap((one) => one?.scopes ?? []);
  if (permissions === undefined || SCOPES.some((one) => scopes.includes(one))) return;
  const { name, id } = permissions.agent;
  const repos = repositories.length === 0 ? [] : ['--repos', repositories.join(',')];
  const add = platform ? ['change', name || id, PLATFORM, '--add-scopes'] : ['add', name || id, PLATFORM, '--scopes'];
  throw new CommandFailed(
    `The broker would refuse every clone and push of ${name}: it may use neither ${SCOPES.join(' nor ')}. Nothing was written. ` +
      `An owner grants them with "${PROGRAM} grant ${commandLine([...add, SCOPES.join(','), ...(platform ? [] : repos)])}", unless a rule of its policy denies them.`,
  );
}

async function permissionsOf(profile: Profile): Promise<Permissions | undefined> {
  try {
    const client = agentClient(signedSend({ url: profile.url, token: agentSigner(profile) }));
    const answer = await client.permissions(AbortSignal.timeout(TIMEOUT_MS));
    return answer.ok ? answer.value.permissions : undefined;
  } catch {
    return undefined;
  }
}
