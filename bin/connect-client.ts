/** `agent-broker connect`: creates an agent for an MCP client, and adds the entry to the client's configuration. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { readProfile } from '../mcp/profile.ts';
import { type ClientId, clientNamed, configFile, serverEntry } from './client-config.ts';
import { dataFolder } from './connection.ts';
import { changedLines, type Edited, editEntry } from './edit-config.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { fileNameOf, type MakeOptions, makeAgent } from './make-agent.ts';
import { replaceFile } from './replace-file.ts';
import { ownLauncher, SERVER_NAME } from './server-entry.ts';

export type ConnectOptions = MakeOptions & {
  name?: string;
  profile?: string;
  project?: boolean;
  dryRun?: boolean;
  undo?: boolean;
  json?: boolean;
};

export type Connected = {
  client: ClientId;
  /** The client's configuration. */
  config: string;
  change: Edited['change'];
  /** Diff of our entry (`-`, `+`). The rest of the file may contain secrets, and is not shown. */
  lines: string[];
  /** Undefined after --undo. */
  profile?: string;
  agent?: 'made' | 'there already';
  agent_id?: string;
  dry_run: boolean;
};

/** Throws CommandFailed and WrongUsage. The configuration is checked before an agent is created. */
export async function connectClient(client: ClientId, options: ConnectOptions): Promise<Connected> {
  const config = configOf(client, options);
  const text = readText(config);
  const dry_run = options.dryRun === true;
  const place = [clientNamed(client).member, SERVER_NAME] as const;
  if (options.undo) {
    const edited = editEntry(text, place, undefined, config);
    if (!dry_run) writeText(config, edited, text);
    return {
      client,
      config,
      change: edited.change,
      lines: changedLines(SERVER_NAME, edited.before, undefined),
      dry_run,
    };
  }
  const profile = profileOf(client, options);
  const there = existsSync(profile);
  if (there && (options.grant ?? options.policy ?? options.invite) !== undefined)
    throw new WrongUsage(
      `The agent of ${profile} is there already, so --grant, --policy and --invite change nothing: leave them out, or name another agent with --name.`,
    );
  if (options.profile !== undefined && !there) throw new CommandFailed(`There is no profile at ${profile}.`);
  const entry = serverEntry(client, { profile, launcher: ownLauncher(), platform: process.platform });
  const edited = editEntry(text, place, entry, config);
  let agent_id: string | undefined;
  if (there) agent_id = readProfile({}, profile).agentId;
  else if (!dry_run) ({ agent_id } = await makeAgent(agentName(client, options), options, profile));
  if (!dry_run) writeText(config, edited, text);
  const agent = there ? 'there already' : 'made';
  return {
    client,
    config,
    change: edited.change,
    lines: changedLines(SERVER_NAME, edited.before, entry),
    profile,
    agent,
    ...(agent_id !== undefined && { agent_id }),
    dry_run,
  };
}

function configOf(client: ClientId, { project }: ConnectOptions): string {
  const machine = { platform: process.platform, environment: process.env, home: homedir(), cwd: process.cwd() };
  const path = configFile(client, machine, project ? 'project' : 'user');
  if (path === undefined)
    throw new WrongUsage(`${clientNamed(client).title} has no configuration for projects: leave out --project.`);
  return path;
}

const agentName = (client: ClientId, { name }: ConnectOptions): string =>
  name ?? `${client} on ${hostname().split('.')[0]}`;

/** In the broker's data folder if there is one; else in the user's own, which is the same for all projects. */
function profileOf(client: ClientId, options: ConnectOptions): string {
  if (options.profile !== undefined) return resolve(options.profile);
  const named = options.data ?? process.env.AGENT_BROKER_DATA;
  const folder =
    named !== undefined || existsSync(dataFolder(options)) ? dataFolder(options) : join(homedir(), '.agent-broker');
  return join(folder, 'profiles', `${fileNameOf(agentName(client, options))}.json`);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return '';
    throw new CommandFailed(`${path} cannot be read (${code}), so nothing was changed.`);
  }
}

function writeText(path: string, { text, change }: Edited, before: string): void {
  if (change === 'none') return;
  try {
    if (readText(path) !== before)
      throw new CommandFailed(`${path} was changed concurrently by another program: try again.`);
    replaceFile(path, text);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
  }
}

const DONE: Record<Edited['change'], [did: string, would: string]> = {
  added: ['Added to', 'Would be added to'],
  changed: ['Changed in', 'Would be changed in'],
  removed: ['Taken out of', 'Would be taken out of'],
  none: ['Nothing to change in', 'Nothing to change in'],
};

export function inWords(done: Connected): string {
  const { client, config, change, lines, profile, agent, agent_id, dry_run } = done;
  const { title, afterwards } = clientNamed(client);
  const key =
    agent === 'made'
      ? dry_run
        ? `An agent would be made, with its key in ${profile}.`
        : `Made the agent ${agent_id}. Its key is in ${profile}, which only you can read, and nowhere else.`
      : `Uses the agent ${agent_id} of ${profile}.`;
  const undone =
    change === 'removed' && !dry_run
      ? 'The agent and its key are still there: to revoke it: agent-broker agent revoke AGENT_ID.'
      : undefined;
  return [
    ...(profile === undefined ? [] : [key]),
    `${DONE[change][dry_run ? 1 : 0]} ${title}’s configuration, ${config}${lines.length > 0 ? ':' : '.'}`,
    ...(lines.length > 0 ? ['', ...lines.map((line) => `  ${line}`), ''] : []),
    ...(change === 'none' || dry_run ? [] : [afterwards]),
    ...(undone === undefined ? [] : [undone]),
    ...(dry_run ? ['Nothing was done.'] : []),
  ].join('\n');
}
