/** Asks at a terminal for what the options of `agent-broker connect` leave open: the client, and what its agent may do. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { connectAsOwner } from '../connection.ts';
import { shortScope } from '../describe-grants.ts';
import { WrongUsage } from '../failure.ts';
import { hasTerms } from '../make-agent.ts';
import { described, listPlatforms, readPlatform } from '../owner-platforms.ts';
import { PROGRAM } from '../program-name.ts';
import { hasRepositories } from '../resolve-grants.ts';
import { ask, canAsk, choose } from '../terminal/prompt.ts';
import { clientsFound } from './client-config.ts';
import { CLIENTS, type ClientId, clientNamed } from './clients.ts';
import type { ConnectOptions } from './connect-client.ts';

/** Asks for one of the clients found on this machine. Throws WrongUsage without a terminal. */
export async function askClient(): Promise<ClientId> {
  if (!canAsk())
    throw new WrongUsage(`Name the client: ${PROGRAM} connect CLIENT. The clients are ${CLIENTS.join(', ')}.`);
  const machine = { platform: process.platform, environment: process.env, home: homedir(), cwd: process.cwd() };
  const found = clientsFound(machine, existsSync);
  const choices = [...found, ...CLIENTS.filter((client) => !found.includes(client))];
  return await choose(
    'Which client?',
    choices.map((value) => ({
      value,
      text: `${clientNamed(value).title}${found.includes(value) ? '' : ' (not found here)'}`,
    })),
  );
}

/** Returns the options, completed with what the agent may do where they leave that open and there is a terminal to ask at. */
export async function askTerms(options: ConnectOptions): Promise<ConnectOptions> {
  if (!canAsk() || options.json || options.invite !== undefined || hasTerms(options)) return options;
  const broker = await connectAsOwner(options);
  const platforms = await listPlatforms(broker);
  const nothing = { value: undefined, text: 'nothing yet: it asks for what it needs, and you decide' };
  if (!platforms.some(({ builtin }) => builtin !== null))
    process.stderr.write(`To add a platform such as GitHub first: ${broker.command('add github')}\n`);
  const chosen = await choose('What may it use?', [
    ...platforms.map((value) => ({ value, text: described(value) })),
    nothing,
  ]);
  if (chosen === undefined) return options;
  const platform = await readPlatform(broker, chosen.platform_id);
  const preset = await choose('What may it do there?', [
    ...platform.presets.map(({ name, scopes }) => ({
      value: [name],
      text: `${name.padEnd(11)} ${scopes.length > 14 ? `${scopes.length} scopes` : scopes.map(shortScope).join(', ')}`,
    })),
    { value: undefined, text: 'scopes that I name' },
  ]);
  const words =
    preset ??
    listOf(await ask(`Which, between commas (${platform.scopes.map(({ scope }) => shortScope(scope)).join(', ')}): `));
  if (words.length === 0) return options;
  const repos = hasRepositories(platform)
    ? listOf(await ask('Only in these repositories, between commas (owner/name, owner/*; nothing: all): '))
    : [];
  const expires = await ask('Until when (30d, 12h, a moment, or never) [30d]: ', '30d');
  return {
    ...options,
    grant: [{ platform: platform.platform_id, words }],
    ...(repos.length > 0 && { repos }),
    ...(expires !== 'never' && { expires }),
  };
}

const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
