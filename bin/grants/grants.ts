/** Lists, creates, changes and removes an agent's grants, through the owner API. */
import type { Agent, Body, ChangedGrant, OwnedGrant } from '../../broker/console/answers.ts';
import type { ConnectionOptions } from '../connection.ts';
import { expiresInSeconds, type Lasting } from '../duration.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { findAgent } from '../find-agent.ts';
import { type OwnerApi, openOwnerApi } from '../owner-api.ts';
import { listPlatforms, platformNamed } from '../owner-platforms.ts';
import { resolveGrants } from '../resolve-grants.ts';
import { commandLine } from '../server-entry.ts';
import { line, styled } from '../terminal/line.ts';
import { printLines, printResult } from '../terminal/output.ts';
import { canAsk, confirm } from '../terminal/prompt.ts';
import { grantLines } from './grant-lines.ts';

export type GrantOptions = ConnectionOptions & {
  json?: boolean;
  scopes?: string[];
  addScopes?: string[];
  repos?: string[];
  recipients?: string[];
  expires?: Lasting;
  approval?: boolean;
  connection?: string;
  yes?: boolean;
};

export async function listGrants(given: string, options: GrantOptions): Promise<void> {
  const api = await openOwnerApi(options);
  const agent = await findAgent(api, given);
  const grants = await grantsOf(api, agent);
  printResult(options, grants, () =>
    grants.length === 0 ? [line`${agent.name} is granted nothing.`] : grants.flatMap(grantLines),
  );
}

export async function addGrant(given: string, platformGiven: string, options: GrantOptions): Promise<void> {
  const api = await openOwnerApi(options);
  const platform = await platformOf(api, platformGiven);
  const agent = await findAgent(api, given);
  const there = meant(await grantsOf(api, agent), platform, options.connection);
  if (there.length > 0)
    throw new CommandFailed(
      `${agent.name} has a grant on ${platform} already. Change it with: ${api.command(`grant change ${words(given, platform, options)}`)}`,
    );
  if (options.scopes === undefined) throw new WrongUsage('Say what is granted with --scopes.');
  await send(api, agent, platform, options);
}

export async function changeGrant(given: string, platformGiven: string, options: GrantOptions): Promise<void> {
  const { scopes, addScopes, repos, recipients, expires, approval } = options;
  if (scopes && addScopes) throw new WrongUsage('--scopes says all that it shall have: leave out --add-scopes.');
  if ([scopes, addScopes, repos, recipients, expires, approval].every((one) => one === undefined))
    throw new WrongUsage(
      'Say what to change: --scopes, --add-scopes, --repos, --recipients, --expires, or --approval.',
    );
  const api = await openOwnerApi(options);
  const platform = await platformOf(api, platformGiven);
  const agent = await findAgent(api, given);
  const [there, ...others] = meant(await grantsOf(api, agent), platform, options.connection);
  if (!there)
    throw new CommandFailed(
      `${agent.name} has no such grant on ${platform}. Make one with: ${api.command(`grant add ${words(given, platform, options)} --scopes …`)}`,
    );
  if (others.length > 0 && addScopes)
    throw new CommandFailed(`${agent.name} has several grants on ${platform}: say which one with --connection.`);
  // The complete list is sent: without the version it would give back what another owner takes away meanwhile.
  const more = addScopes && { scopes: [...there.scopes, ...addScopes], version: there.version };
  await send(api, agent, platform, { ...options, ...more });
}

export async function removeGrant(given: string, platformGiven: string, options: GrantOptions): Promise<void> {
  if (!options.yes && (options.json || !canAsk()))
    throw new WrongUsage('To remove a grant without a terminal to ask at, or with --json, add --yes.');
  const api = await openOwnerApi(options);
  const platform = await platformOf(api, platformGiven);
  const agent = await findAgent(api, given);
  const there = meant(await grantsOf(api, agent), platform, options.connection);
  if (there.length === 0) throw new CommandFailed(`${agent.name} has no such grant on ${platform}.`);
  if (!options.yes) {
    printLines([line`${styled('bold', agent.name)} has`, ...there.flatMap(grantLines)]);
    if (!(await confirm('Take this away?'))) throw new CommandFailed('Nothing was changed.');
  }
  const query = options.connection === undefined ? '' : `?connection=${encodeURIComponent(options.connection)}`;
  const path = `/owner/agents/${agent.agent_id}/grants/${encodeURIComponent(platform)}${query}` as const;
  const { removed } = await api.ask('DELETE', path);
  printResult(options, removed, () => [line`Removed from ${agent.name}:`, ...removed.flatMap(grantLines)]);
}

/** Formats the words that name the same grant in a suggested command. */
const words = (given: string, platform: string, { connection }: GrantOptions): string =>
  commandLine([given, platform, ...(connection === undefined ? [] : ['--connection', connection])]);

const grantsOf = async (api: OwnerApi, agent: Agent): Promise<OwnedGrant[]> =>
  (await api.ask('GET', `/owner/agents/${agent.agent_id}/grants`)).grants;

const meant = (grants: readonly OwnedGrant[], platform: string, connection: string | undefined): OwnedGrant[] =>
  grants.filter(
    (one) => one.platform === platform && (connection === undefined || one.connection?.label === connection),
  );

async function send(
  api: OwnerApi,
  agent: Agent,
  platform: string,
  options: GrantOptions & { version?: string },
): Promise<void> {
  const { scopes, repos, recipients, expires, approval, connection, version } = options;
  // A single keyword removes a limit; no valid entry of a list is equal to it.
  const limit = (all: string[] | undefined, none: string) => (all?.length === 1 && all[0] === none ? null : all);
  const body: Body<'POST', '/owner/agents/x/grants/y'> = {
    ...(scopes && { scopes: await scopesNamed(api, platform, scopes) }),
    ...(repos && { repos: limit(repos, 'all') }),
    ...(recipients && { recipients: limit(recipients, 'anybody') }),
    ...expiresInSeconds(expires),
    ...(approval !== undefined && { require_approval: approval }),
    ...(connection !== undefined && { connection }),
    ...(version !== undefined && { version }),
  };
  const path = `/owner/agents/${agent.agent_id}/grants/${encodeURIComponent(platform)}` as const;
  const changed = (await api.ask('POST', path, body)) as ChangedGrant;
  printResult(options, changed, () => [
    line`${agent.name} is now granted`,
    ...grantLines(changed.grant),
    ...changed.warnings.map((each) => styled('wait', line`Warning: ${each}`)),
    ...changed.next_steps.map(({ detail }) => styled('wait', line`Still to do: ${detail}`)),
  ]);
}

/** Resolves a platform given by its id, or by its built-in such as github. Throws CommandFailed with the list of platforms. */
const platformOf = async (api: OwnerApi, given: string): Promise<string> =>
  platformNamed(api.broker, given, await listPlatforms(api.broker)).platform_id;

/** Expands presets and short names to full scopes. Throws CommandFailed with the list of scopes. */
async function scopesNamed(api: OwnerApi, platform: string, words: string[]): Promise<string[]> {
  const grants = await resolveGrants(api.broker, [{ platform, words }], {});
  return grants.flatMap(({ scopes }) => scopes);
}
