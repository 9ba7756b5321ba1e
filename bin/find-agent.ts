/** Finds an agent by what a person typed: its name or id. */
import type { Agent } from '../broker/console/answers.ts';
import { didYouMean } from '../broker/runtime/did-you-mean.ts';
import { CommandFailed } from './failure.ts';
import type { OwnerApi } from './owner-api.ts';

/**
 * Returns the agent with this name, agent id (`agt_…`) or uuid. Throws CommandFailed when there is none, with similar names, or when
 * several have the name, with their ids.
 */
export async function findAgent(api: OwnerApi, given: string): Promise<Agent> {
  const { agents } = await api.ask('GET', '/owner/agents');
  const found = agents.filter(
    ({ id, agent_id, name }) => [id, agent_id].includes(given.toLowerCase()) || name === given,
  );
  const [one, ...others] = found;
  if (!one) {
    const near = didYouMean(
      given,
      agents.map(({ name }) => name),
    );
    throw new CommandFailed(`No agent has the name or id ${given}.${near} All of them: ${api.command('agent list')}`);
  }
  if (others.length === 0) return one;
  throw new CommandFailed(
    `${found.length} agents have the name ${given}. Give the id of the one that you mean:\n${found.map(({ agent_id, status }) => `  ${agent_id}  ${status}`).join('\n')}`,
  );
}

/** Returns the id of that agent. A complete id is returned without a look-up, because its agent may be deleted. Throws CommandFailed. */
export const agentIdOf = async (api: OwnerApi, given: string): Promise<string> =>
  /^(agt_[a-z0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.test(given)
    ? given
    : (await findAgent(api, given)).agent_id;
