/** `agent-broker doctor --exposure`: lists the credentials that a command could read without the broker. Changes nothing, and prints no values. */
import { statSync } from 'node:fs';
import { gitConfig, settingsIn } from '../../mcp/git-config.ts';
import { isOwnHelper } from '../git/settings.ts';
import { PROGRAM } from '../program-name.ts';
import { type Line, line, styled } from '../terminal/line.ts';
import { findFiles } from './files.ts';
import type { Finding, Place } from './finding.ts';
import { recognise } from './key-forms.ts';
import { findVariables, named } from './variables.ts';

/** The address at which clouds serve credentials to their machines (AWS, Google Cloud, Azure). */
export const METADATA = '169.254.169.254';
const METADATA_TIMEOUT_MS = 1_000;

/** `metadata`: host, with or without a port, that is probed for an answer; undefined: no probe. */
export async function findExposure(place: Place, metadata: string | undefined): Promise<Finding[]> {
  const [inGit, address] = await Promise.all([findInGit(place), metadata === undefined ? [] : findMetadata(metadata)]);
  return [...findVariables(place), ...findFiles(place), ...inGit, ...findSockets(place), ...address];
}

/** Finds git settings that contain or provide credentials, as they apply in the working folder. */
async function findInGit({ env, cwd }: Place): Promise<Finding[]> {
  const listed = await gitConfig(['--null', '--list'], env, cwd);
  return settingsIn(listed ?? '').flatMap(({ name, value }): Finding[] => {
    // The header of `run`, with a placeholder that is worthless elsewhere.
    if (env.AGENT_BROKER_RUN_URL && name.startsWith(`http.${env.AGENT_BROKER_RUN_URL}/`)) return [];
    const what = /^credential\.(.*\.)?helper$/.test(name) ? helperIn(value) : keyIn(name, value);
    if (what === undefined) return [];
    const where = name.replaceAll(/:\/\/[^/@\s]*@/g, '://…@');
    return [{ where, ...what }];
  });
}

type InGit = Omit<Finding, 'where'>;

/** Describes a credential helper of git, other than the broker's own. */
function helperIn(value: string): InGit | undefined {
  if (value === '' || isOwnHelper(value)) return undefined;
  return {
    kind: 'helper',
    // A script may contain secrets, so only a plain program name is shown.
    what: `git gets passwords from ${/^[\w./-]+(?= |$)/.exec(value)?.[0] ?? 'a script'}`,
    advice: `After "${PROGRAM} git-setup" git asks the broker’s helper for its repositories; take this one out, or keep it out of the command’s reach.`,
  };
}

/** Finds a credential in an address, or in a header that git sends (as actions/checkout leaves behind). */
function keyIn(name: string, value: string): InGit | undefined {
  const isHeader = /^http\.(.*\.)?extraheader$/.test(name) && /^(?:proxy-)?authorization:/i.test(value);
  const found = isHeader ? undefined : recognise('', `${name} ${value}`);
  if (!isHeader && found === undefined) return undefined;
  return {
    kind: 'setting',
    what: isHeader
      ? 'a header with a credential, which git sends'
      : `${found && named(found)}, in the configuration of git`,
    advice: `Take it out of the configuration of git; "${PROGRAM} git-setup" sends git to the broker, which needs none.`,
  };
}

function findSockets({ env }: Place): Finding[] {
  const path = env.SSH_AUTH_SOCK;
  if (!path || !isSocket(path)) return [];
  return [
    {
      kind: 'socket',
      where: path,
      what: 'an SSH agent, which signs in wherever its keys are known',
      advice: `Start the command without it: env -u SSH_AUTH_SOCK ${PROGRAM} run … . "${PROGRAM} git-setup" replaces git over SSH.`,
    },
  ];
}

function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    return false;
  }
}

/** Any response counts: it shows that the address is reachable. */
async function findMetadata(host: string): Promise<Finding[]> {
  const address = `http://${host}/`;
  try {
    const answer = await fetch(address, { redirect: 'manual', signal: AbortSignal.timeout(METADATA_TIMEOUT_MS) });
    await answer.body?.cancel();
  } catch {
    return [];
  }
  return [
    {
      kind: 'address',
      where: address,
      what: 'metadata of the cloud, where a machine gets credentials of its role',
      advice: 'Give the machine no role, or refuse the address: a network policy, or bwrap --unshare-net.',
    },
  ];
}

/** Formats the findings for a person. `words`: the command. `isAsked`: whether the metadata address was probed. */
export function describeExposure(findings: readonly Finding[], words: readonly string[], isAsked: boolean): Line[] {
  const command = words.length === 0 ? 'a command' : words.join(' ');
  const found = findings.flatMap(({ where, what, advice }) => [
    styled('bold', where),
    line`    ${what}`,
    line`    ${styled('quiet', advice)}`,
  ]);
  // Without this line, "nothing was found" would seem to cover more than was checked.
  const unasked = isAsked
    ? []
    : [line`The metadata address of a cloud, which may give a machine credentials, was not queried: add --metadata.`];
  if (findings.length === 0) return [line`Nothing was found that ${command} could use without the broker.`, ...unasked];
  return [
    ...found,
    line``,
    line`${findings.length} found that ${command} could use without the broker. With as little as possible it starts by`,
    line`${PROGRAM} run --strict -- ${words.length === 0 ? '<command>' : command}`,
    ...unasked,
  ];
}
