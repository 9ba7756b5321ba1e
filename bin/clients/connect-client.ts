/** `agent-broker connect`: creates an agent for an MCP client, and adds the entry to the client's configuration. */

import { existsSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { fileNameOf } from '../../broker/console/static/new-agent/lines.js';
import type { PlatformPermissions } from '../../mcp/client/permissions.ts';
import { readProfile } from '../../mcp/profile.ts';
import { commandWith } from '../command-with.ts';
import { connectAsOwner, dataFolder } from '../connection.ts';
import { describeGrants, type ShownGrant, shortScope } from '../describe-grants.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { hasTerms, lookUpTerms, type MakeOptions, makeAgent, placeOfKey } from '../make-agent.ts';
import { PROGRAM } from '../program-name.ts';
import { commandLine, ownLauncher } from '../server-entry.ts';
import { configFile, serverEntry } from './client-config.ts';
import { readClientFile, refuseUnwritable, writeClientFile } from './client-file.ts';
import { type ClientId, clientNamed } from './clients.ts';
import { editClient, entryLines } from './edit-client.ts';
import type { Edited } from './edit-config.ts';

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
  /** Path of the client's configuration file. */
  config: string;
  change: Edited['change'];
  /** Diff of our entry (`-`, `+`). The rest of the file may contain secrets, and is not shown. */
  lines: string[];
  /** Undefined after --undo. */
  profile?: string;
  agent?: 'made' | 'there already';
  agent_id?: string;
  /** What a new agent is granted; undefined for an invited agent, whose grants are set by the invite. */
  grants?: ShownGrant[];
  /** What an invited agent may do now; undefined when the broker does not report it. */
  permissions?: PlatformPermissions[];
  /** Set when an existing agent is halted, until an owner or time ends the halt. */
  warning?: string;
  dry_run: boolean;
};

/**
 * Connects a client, or disconnects it with --undo. Checks that the configuration can be changed and written before an agent is created;
 * if writing fails all the same, the error names the created agent.
 *
 * @throws CommandFailed also when the existing agent is revoked; WrongUsage
 */
export async function connectClient(client: ClientId, options: ConnectOptions): Promise<Connected> {
  const config = configOf(client, options);
  const text = readClientFile(config);
  const dry_run = options.dryRun === true;
  if (options.undo) {
    const edited = await editClient(client, text, undefined, config);
    if (!dry_run) writeClientFile(config, edited, text);
    return {
      client,
      config,
      change: edited.change,
      lines: entryLines(edited.before, undefined),
      dry_run,
    };
  }
  const profile = profileOf(client, options);
  const there = existsSync(profile);
  if (there && (hasTerms(options) || options.invite !== undefined))
    throw new WrongUsage(
      `The agent of ${profile} is there already, so --grant, its limits, --policy and --invite change nothing: leave them out, or name another agent with --name.`,
    );
  if (options.profile !== undefined && !there) throw new CommandFailed(`There is no profile at ${profile}.`);
  const entry = serverEntry(client, { profile, launcher: ownLauncher(), platform: process.platform });
  const edited = await editClient(client, text, entry, config);
  if (edited.change !== 'none') refuseUnwritable(config);
  let agent_id: string | undefined;
  let grants: ShownGrant[] = [];
  let permissions: PlatformPermissions[] | undefined;
  const name = agentName(client, options);
  let warning: string | undefined;
  if (there) {
    const own = readProfile({}, profile);
    agent_id = own.agentId;
    const { standingOfAgent } = await import('../own-permissions.ts');
    const instead = `Make another one: ${commandWith(options, commandLine(['connect', client, '--name', 'NAME']))}`;
    ({ warning } = await standingOfAgent(own, instead));
  } else if (!dry_run) ({ agent_id, grants } = await makeAgent(name, options, profile));
  // A dry run performs the same look-ups, and so reports the same refusals. An invite's grants cannot be read without using it.
  else if (options.invite === undefined) grants = await lookUpTerms(await connectAsOwner(options), name, options);
  try {
    if (!dry_run) writeClientFile(config, edited, text);
  } catch (error) {
    if (there || !(error instanceof CommandFailed)) throw error;
    const again = ['connect', client, '--profile', profile, ...(options.project ? ['--project'] : [])];
    throw new CommandFailed(
      `${error.message}\nThe agent ${agent_id} was created nevertheless, and its key is in ${profile}.\n` +
        // The profile names the broker, and needs no session of an owner.
        `Connect it later: ${PROGRAM} ${commandLine(again)}\n` +
        `Or end it: ${commandWith(options, `agent revoke ${agent_id}`)}`,
    );
  }
  const agent = there ? 'there already' : 'made';
  const isInvited = options.invite !== undefined;
  if (isInvited && !dry_run) {
    const { ownPermissions } = await import('../own-permissions.ts');
    permissions = (await ownPermissions(readProfile({}, profile)))?.platforms;
  }
  return {
    client,
    config,
    change: edited.change,
    lines: entryLines(edited.before, entry),
    profile,
    agent,
    ...(agent_id !== undefined && { agent_id }),
    ...(!isInvited && { grants }),
    ...(permissions && { permissions }),
    ...(warning !== undefined && { warning }),
    dry_run,
  };
}

/** Whether connecting would create an agent. */
export const isNewAgent = (client: ClientId, options: ConnectOptions): boolean =>
  options.profile === undefined && !existsSync(profileOf(client, options));

function configOf(client: ClientId, { project }: ConnectOptions): string {
  const machine = { platform: process.platform, environment: process.env, home: homedir(), cwd: process.cwd() };
  const path = configFile(client, machine, project ? 'project' : 'user');
  if (path === undefined)
    throw new WrongUsage(`${clientNamed(client).title} has no configuration for projects: leave out --project.`);
  return path;
}

const agentName = (client: ClientId, { name }: ConnectOptions): string =>
  name ?? `${client} on ${hostname().split('.')[0]}`;

/** In the broker's data folder if that exists; otherwise in the user's own folder, which is the same for all projects. */
function profileOf(client: ClientId, options: ConnectOptions): string {
  if (options.profile !== undefined) return resolve(options.profile);
  const named = options.data ?? (process.env.AGENT_BROKER_DATA || undefined);
  const folder =
    named !== undefined || existsSync(dataFolder(options)) ? dataFolder(options) : join(homedir(), '.agent-broker');
  return join(folder, 'profiles', `${fileNameOf(agentName(client, options))}.json`);
}

const DONE: Record<Edited['change'], [did: string, would: string]> = {
  added: ['Added to', 'Would be added to'],
  changed: ['Changed in', 'Would be changed in'],
  removed: ['Taken out of', 'Would be taken out of'],
  none: ['Nothing to change in', 'Nothing to change in'],
};

/** Describes the result. `options`: of the command, for the command lines in the text. */
export function describeConnected(done: Connected, options: ConnectOptions): string {
  const { client, config, change, lines, profile, agent, agent_id, warning, dry_run } = done;
  const { title, afterwards } = clientNamed(client);
  const key =
    agent === 'made' && profile !== undefined
      ? dry_run
        ? `An agent would be made, with its key in ${profile}.`
        : `Made the agent ${agent_id}. ${placeOfKey(profile)}`
      : `Uses the agent ${agent_id} of ${profile}.`;
  const undone =
    change === 'removed' && !dry_run
      ? `Restart ${title}, so that it stops the server. The agent and its key are still there; to revoke it: ${commandWith(options, 'agent revoke AGENT_ID')}`
      : undefined;
  return [
    ...(profile === undefined ? [] : [key, ...(agent === 'made' ? describeNewAgent(done) : [])]),
    `${DONE[change][dry_run ? 1 : 0]} ${title}’s configuration, ${config}${lines.length > 0 ? ':' : '.'}`,
    ...(lines.length > 0 ? ['', ...lines.map((line) => `  ${line}`), ''] : []),
    ...(change === 'none' || change === 'removed' || dry_run ? [] : [afterwards]),
    ...(undone === undefined ? [] : [undone]),
    ...(warning === undefined ? [] : [warning]),
    ...(dry_run ? ['Nothing was done.'] : []),
  ].join('\n');
}

/** Describes what a new agent may do. */
function describeNewAgent({ grants, permissions }: Connected): string[] {
  if (grants?.length === 0)
    return [
      'It is granted nothing yet: it asks for what it needs, and you find that in the console. Or say it here: --grant.',
    ];
  if (permissions?.length === 0) return ['It may do nothing yet: it asks its owner for what it needs.'];
  return [
    ...describeGrants(grants ?? []),
    ...(permissions ?? []).map(
      ({ platformId, scopes }) => `On ${platformId} it may: ${scopes.map(shortScope).join(', ')}`,
    ),
  ];
}
