/** Builds the environment of a command that runs with a sidecar. */
import type { JsonValue } from '../../json/json-value.ts';
import type { Permissions } from '../client/permissions.ts';
import type { Setting } from '../git-config.ts';
import { GITHUB_BY_PROXY, type GitRules, gitRulesFile } from './git-rules.ts';
import type { ErrorForm } from './refusal.ts';
import { CODEHOST, type Place, TOOLS } from './tools.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A connection that the agent has a grant on. `name`: its label, or its id where it has none. */
export type Granted = {
  name: string;
  platform: string;
  platformName: string;
  isDefault: boolean;
  /** The platform's base URL; absent from older brokers. */
  baseUrl?: string | undefined;
  /** Base URLs of single operations of the platform. */
  otherBaseUrls?: readonly string[] | undefined;
  /** The platform's error format; undefined when unknown. */
  errors?: ErrorForm | undefined;
};

/** Lists the granted connections. MCP servers are left out: they have an entry point of their own. */
export function grantedOf({ platforms }: Permissions): Granted[] {
  return platforms
    .filter(({ serverHost, serverName }) => serverHost === undefined && serverName === undefined)
    .flatMap(({ platformId, platformName, baseUrl, otherBaseUrls, errorBody, errorStatus, connections = [] }) =>
      connections.map(({ label, connection_id: id, default: isDefault }) => ({
        name: label ?? id,
        platform: platformId,
        platformName,
        isDefault,
        ...(baseUrl !== undefined && { baseUrl }),
        ...(otherBaseUrls !== undefined && { otherBaseUrls }),
        ...(errorBody !== undefined && { errors: { body: errorBody as JsonValue, status: errorStatus } }),
      })),
    );
}

/** For a row of the tools table: the chosen connection, and the others that were candidates for it. */
export type Chosen = { tool: (typeof TOOLS)[number]; connection: Granted; others: Granted[] };

/** Chooses a connection for each tool. The platform's usual id goes before other platforms of the same built-in, a default connection before others. */
export function choose(granted: readonly Granted[]): Chosen[] {
  return TOOLS.flatMap((tool) => {
    const rank = ({ platform, isDefault }: Granted) => (platform === tool.platform ? 0 : 2) + (isDefault ? 0 : 1);
    const [connection, ...others] = granted
      .filter(({ platform, platformName }) => platform === tool.platform || platformName === tool.platformName)
      .sort((a, b) => rank(a) - rank(b));
    return connection === undefined ? [] : [{ tool, connection, others }];
  });
}

/** The connection that git uses: git has one entry point, which is the code host's (docs/git.md). */
export const codehostOf = (chosen: readonly Chosen[]): string | undefined =>
  chosen.find(({ tool, connection }) => tool.platform === CODEHOST && connection.platform === CODEHOST)?.connection
    .name;

/** By connection to a registry of npm packages: the path of the registry at its host, without a slash at its end. */
export function registryPathsOf(chosen: readonly Chosen[]): Map<string, string> {
  const registries = chosen.filter(({ tool }) => tool.platform === 'npm').map(({ connection }) => connection);
  return new Map(
    registries.map(({ name, baseUrl }) => [name, (baseUrl && URL.parse(baseUrl)?.pathname.replace(/\/$/, '')) || '']),
  );
}

/** By connection: the beginning of all paths of its platform. */
export const pathStartsOf = (chosen: readonly Chosen[]): Map<string, string> =>
  new Map(chosen.flatMap(({ tool: { pathStart }, connection }) => (pathStart ? [[connection.name, pathStart]] : [])));

export type Run = {
  /** The sidecar's address, without a trailing slash. */
  url: string;
  placeholder: string;
  folder: string;
  socket: string | undefined;
  chosen: readonly Chosen[];
  /** The prefixes of the code host's addresses, for git. */
  codeHosts: readonly string[];
  /** The rules of the user's git; undefined when git cannot be run. */
  gitRules?: GitRules | undefined;
  isStrict: boolean;
  /** Whether a variable of the parent is likely to hold a credential. */
  isCredential: (name: string, value: string) => boolean;
};

export type Made = {
  environment: Record<string, string>;
  /** Files to write into the folder, by name. */
  files: Record<string, string>;
  /** Names of variables of the parent that are likely to hold credentials and were kept; none in strict mode. */
  kept: string[];
};

/**
 * Variables for the agent's own commands only, and those from which a job of GitHub Actions gets its identity: a command that has the latter could act
 * as the pipeline that applies governance files.
 */
const OWN = /^(?:AGENT_BROKER_|ACTIONS_ID_TOKEN_REQUEST_)/i;

const GIT_RULES = 'gitconfig';

/** Builds the environment of the command from the parent's. In strict mode, variables that are likely to hold a credential are dropped. */
export function environmentFor(parent: Environment, run: Run): Made {
  const set: Record<string, string> = { AGENT_BROKER_RUN_URL: run.url, AGENT_BROKER_RUN_KEY: run.placeholder };
  const files: Record<string, string> = {};
  const removed = new Set<string>();
  for (const { tool, connection } of run.chosen) {
    const place = placeOf(run, connection.name);
    Object.assign(set, tool.variables(place));
    for (const [name, value] of Object.entries(tool.defaults ?? {})) if (!parent[name]) set[name] = value;
    Object.assign(files, tool.files?.(place));
    for (const name of tool.removed ?? []) removed.add(name);
  }
  if (codehostOf(run.chosen) !== undefined) {
    const repositories = excludesCodeHost(parent) ? `${run.url}/git/` : GITHUB_BY_PROXY;
    const settings = gitSettings(repositories, run);
    // Also for git before 2.32, which does not support GIT_CONFIG_SYSTEM.
    const rules = run.codeHosts.map((value) => ({ name: `url.${repositories}.insteadOf`, value }));
    Object.assign(set, inVariables(parent, [...settings, ...rules]));
    if (run.gitRules !== undefined) {
      set.GIT_CONFIG_SYSTEM = `${run.folder}/${GIT_RULES}`;
      removed.add('GIT_CONFIG_NOSYSTEM');
      files[GIT_RULES] = gitRulesFile(run.gitRules, { repositories, codeHosts: run.codeHosts, settings });
    }
  }
  Object.assign(set, directTo127(parent));
  const rest = Object.entries(parent).filter(([name]) => !(name in set || removed.has(name) || OWN.test(name)));
  const kept = rest.filter(([name, value]) => value && run.isCredential(name, value)).map(([name]) => name);
  const left = rest.filter(([name, value]) => value !== undefined && !(run.isStrict && kept.includes(name)));
  return {
    environment: { ...Object.fromEntries(left as [string, string][]), ...set },
    files,
    kept: run.isStrict ? [] : kept,
  };
}

function placeOf({ url, placeholder, folder, socket }: Run, connection: string): Place {
  const path = `/proxy/${encodeURIComponent(connection)}`;
  return {
    url: `${url}${path}`,
    keyedUrl: `${url}/~${placeholder}${path}`,
    key: (beginning) => `${beginning}${placeholder}`,
    folder,
    socket,
  };
}

/**
 * Whether variables of the parent exclude the code host from proxies: git then uses no proxy for it, whatever its own settings say, so its addresses are
 * rewritten to the sidecar's own.
 */
function excludesCodeHost({ no_proxy, NO_PROXY }: Environment): boolean {
  const { hostname } = new URL(GITHUB_BY_PROXY);
  return hostsIn(no_proxy ?? NO_PROXY).some(
    (one) => one === '*' || `.${hostname}`.endsWith(`.${one.replace(/^\./, '')}`),
  );
}

/** Returns the settings by which git reaches the sidecar at an address. */
const gitSettings = (repositories: string, { url, placeholder }: Run): Setting[] => [
  { name: `http.${repositories}.extraHeader`, value: `Authorization: Basic ${btoa(`agent:${placeholder}`)}` },
  { name: `http.${repositories}.proxy`, value: repositories.startsWith(url) ? '' : url },
  // Where another setting prevents the use of the proxy, git fails instead of following the code host to https.
  { name: `http.${repositories}.followRedirects`, value: 'false' },
  // Disables password prompts: there is no password to enter.
  { name: `credential.${repositories}.helper`, value: '' },
];

/** Writes settings into variables (git-config(1), GIT_CONFIG_COUNT), after existing ones. */
function inVariables(parent: Environment, settings: readonly Setting[]): Record<string, string> {
  const there = Number(parent.GIT_CONFIG_COUNT ?? 0) || 0;
  const pairs = settings.flatMap(({ name, value }, i) => [
    [`GIT_CONFIG_KEY_${there + i}`, name],
    [`GIT_CONFIG_VALUE_${there + i}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(there + settings.length), ...Object.fromEntries(pairs) };
}

/** The hosts in a variable that excludes hosts from proxies. */
const hostsIn = (value = ''): string[] => value.split(/[\s,]+/).filter((one) => one !== '');

/** Excludes the sidecar's address from proxies: those of the environment, and those in the settings of git, npm or curl, which follow these variables, too. */
function directTo127(parent: Environment): Record<string, string> {
  const others = hostsIn(parent.no_proxy ?? parent.NO_PROXY);
  // Tools accept the asterisk only alone.
  const value = others.includes('*') ? '*' : [...new Set([...others, '127.0.0.1', 'localhost'])].join(',');
  return { no_proxy: value, NO_PROXY: value };
}
