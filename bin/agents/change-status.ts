/** Suspends, resumes, revokes and deletes agents. */
import { type ConnectionOptions, print } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { agentIdOf, findAgent } from '../find-agent.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { line, styled } from '../terminal/line.ts';
import { printLines } from '../terminal/output.ts';
import { canAsk, confirm } from '../terminal/prompt.ts';

export type StatusVerb = 'suspend' | 'resume' | 'revoke' | 'delete';
export type StatusOptions = ConnectionOptions & { json?: boolean; reason?: string; yes?: true };

/** Asks for confirmation first where the change cannot be undone. Throws CommandFailed, WrongUsage. */
export async function changeStatus(verb: StatusVerb, given: string, options: StatusOptions): Promise<void> {
  const asks = (verb === 'revoke' || verb === 'delete') && !options.yes;
  if (asks && (options.json || !canAsk()))
    throw new WrongUsage(`To ${verb} an agent without a terminal to ask at, or with --json, add --yes.`);
  const api = await openOwnerApi(options);
  const agentId = asks ? await confirmed(api, verb, given) : await agentIdOf(api, given);
  const body = options.reason ? { reason: options.reason } : {};
  const now = await api.ask('POST', `/owner/agents/${encodeURIComponent(agentId)}/${verb}`, body);
  print(options, now, () => `${now.name} (${now.agent_id}) is ${now.status}.`);
}

async function confirmed(api: OwnerApi, verb: StatusVerb, given: string): Promise<string> {
  const agent = await findAgent(api, given);
  printLines([line`${styled('bold', agent.name)} (${agent.agent_id}) is ${agent.status}.`]);
  if (!(await confirm(`This cannot be undone. Go on to ${verb} it?`))) throw new CommandFailed('Nothing was changed.');
  return agent.agent_id;
}
