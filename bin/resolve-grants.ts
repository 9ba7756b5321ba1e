/** Parses grants as a person writes them: a platform, presets or scopes by short names, and limits for all of them. */
import { EXPIRY_FORMS, parseExpiry } from '../broker/config-file/expiry.ts';
import { didYouMean } from '../broker/runtime/did-you-mean.ts';
import type { BrokerConnection } from './connection.ts';
import { type ShownGrant, shortScope } from './describe-grants.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { listPlatforms, platformNamed, readPlatform, type WholePlatform } from './owner-platforms.ts';

/** `words`: presets, or scopes with or without the prefix before their colon. */
export type GrantRequest = { platform: string; words: string[] };

export type LimitOptions = { repos?: string[]; recipients?: string[]; expires?: string; requireApproval?: boolean };

/**
 * Resolves the words against the platforms of this broker.
 *
 * @throws CommandFailed, which lists the valid words; WrongUsage for limits that have no effect
 */
export async function resolveGrants(
  broker: BrokerConnection,
  wanted: readonly GrantRequest[],
  limits: LimitOptions,
): Promise<ShownGrant[]> {
  const seconds = secondsOf(limits.expires);
  const platforms = wanted.length === 0 ? [] : await listPlatforms(broker);
  const found = new Map<string, { platform: WholePlatform; words: string[] }>();
  for (const { platform: word, words } of wanted) {
    const { platform_id: id } = platformNamed(broker, word, platforms);
    const known = found.get(id) ?? { platform: await readPlatform(broker, id), words: [] };
    found.set(id, { ...known, words: [...known.words, ...words] });
  }
  const all = [...found.values()];
  refuseUnusedLimit('--repos', limits.repos, all, hasRepositories, 'has repositories');
  refuseUnusedLimit('--recipients', limits.recipients, all, hasRecipients, 'names who receives');
  return all.map(({ platform, words }) => {
    const { scopes, presets } = scopesOf(platform, words);
    return {
      platformId: platform.platform_id,
      platform: platform.name,
      scopes,
      presets,
      hasRepositories: hasRepositories(platform),
      ...(limits.repos && hasRepositories(platform) && { repos: limits.repos }),
      ...(limits.recipients && hasRecipients(platform) && { recipients: limits.recipients }),
      ...(seconds !== undefined && { expires_in_seconds: seconds }),
      ...(limits.requireApproval && { require_approval: true as const }),
    };
  });
}

export const hasRepositories = ({ builtin, manifest }: WholePlatform): boolean =>
  builtin === 'github' || manifest.refs !== undefined || manifest.git_base_url !== undefined;

const hasRecipients = ({ manifest }: WholePlatform): boolean => Object.keys(manifest.recipients ?? {}).length > 0;

/** Refuses a limit that applies to none of the platforms: the person would think that it limits something. */
function refuseUnusedLimit(
  flag: string,
  limit: readonly string[] | undefined,
  grants: readonly { platform: WholePlatform }[],
  applies: (platform: WholePlatform) => boolean,
  what: string,
): void {
  if (limit === undefined || grants.some(({ platform }) => applies(platform))) return;
  const names = grants.map(({ platform }) => platform.platform_id).join(', ') || 'what was granted: name a --grant';
  throw new WrongUsage(`${flag} limits nothing here: no call of ${names} ${what}.`);
}

function scopesOf(platform: WholePlatform, words: readonly string[]): { scopes: string[]; presets: string[] } {
  const known = platform.scopes.map(({ scope }) => scope);
  const presets = platform.presets.filter(({ name }) => words.includes(name)).map(({ name }) => name);
  const scopes = words.flatMap((word) => {
    const preset = platform.presets.find(({ name }) => name === word);
    if (preset) return preset.scopes;
    const found = known.find((scope) => scope === word) ?? known.find((scope) => shortScope(scope) === word);
    if (found) return [found];
    // The tools of an MCP server change; its manifest may not list all of them.
    if (platform.kind === 'mcp') return [word];
    const near = didYouMean(word, [...known.map(shortScope), ...platform.presets.map(({ name }) => name)]);
    throw new CommandFailed(
      `${platform.platform_id} has no scope or preset "${word}".${near}\n${listGrantable(platform)}`,
    );
  });
  return { scopes: [...new Set(scopes)], presets };
}

/** Lists what can be granted on a platform, presets with their scopes. */
function listGrantable({ presets, scopes }: WholePlatform): string {
  const all = scopes.map(({ scope }) => shortScope(scope));
  const sets = presets.map(
    ({ name, scopes: own }) =>
      `  ${name}: ${own.length === all.length ? `all ${all.length} scopes` : own.map(shortScope).join(', ')}`,
  );
  return [...(sets.length > 0 ? ['Presets:', ...sets] : []), `Scopes: ${all.join(', ')}`].join('\n');
}

function secondsOf(expires: string | undefined): number | undefined {
  if (expires === undefined) return undefined;
  const read = parseExpiry(expires);
  if (!read) throw new WrongUsage(`--expires ${expires}: ${EXPIRY_FORMS}.`);
  const ms = read.kind === 'after' ? read.milliseconds : read.moment - Date.now();
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) throw new WrongUsage(`--expires ${expires}: is over, or in less than a minute.`);
  return seconds;
}
