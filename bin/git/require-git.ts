/** Checks with the broker whether the agent can use git. */
import type { Profile } from '../../mcp/profile.ts';
import { CommandFailed } from '../failure.ts';
import { standingOfAgent } from '../own-permissions.ts';
import { PROGRAM } from '../program-name.ts';
import { commandLine } from '../server-entry.ts';

const PLATFORM = 'codehost';
const SCOPES = [`${PLATFORM}:contents.read`, `${PLATFORM}:contents.write`];

/**
 * Returns when the agent may clone or push something, through the connection that is named, and when the broker does not answer, because nothing is known then. The result is a
 * warning where the agent is halted for now.
 *
 * @throws CommandFailed with what an owner can do
 */
export async function requireGit(
  profile: Profile,
  repositories: readonly string[],
  connection: string | undefined,
): Promise<string | undefined> {
  const instead = 'Name the profile of another agent: --profile FILE.';
  const { permissions, warning } = await standingOfAgent(profile, instead);
  const platform = permissions?.platforms.find(({ platformId }) => platformId === PLATFORM);
  const connections = platform?.connections ?? [];
  const used = connection === undefined ? undefined : connections.find(({ label }) => label === connection);
  if (platform && connection !== undefined && used === undefined)
    throw new CommandFailed(
      `This agent has no grant on a connection ${connection} of ${PLATFORM}. Its connections there: ${connections.flatMap(({ label }) => label ?? []).join(', ') || 'none'}. Nothing was written.`,
    );
  const scopes = (used === undefined ? [platform, ...connections] : [used]).flatMap((one) => one?.scopes ?? []);
  if (permissions === undefined || SCOPES.some((one) => scopes.includes(one))) return warning;
  const { name, id } = permissions.agent;
  const repos = repositories.length === 0 ? [] : ['--repos', repositories.join(',')];
  const on = connection === undefined ? [] : ['--connection', connection];
  const add = platform ? ['change', name || id, PLATFORM, '--add-scopes'] : ['add', name || id, PLATFORM, '--scopes'];
  throw new CommandFailed(
    `The broker would refuse every clone and push of ${name}: it may use neither ${SCOPES.join(' nor ')}. Nothing was written. ` +
      `An owner grants them with "${PROGRAM} grant ${commandLine([...add, SCOPES.join(','), ...(platform ? [] : repos), ...on])}", unless a rule of its policy denies them.`,
  );
}
