/**
 * Limits of the App installation token used for one call: the permissions of the call's operation, or else of its scopes, and, for a grant
 * that lists repositories, the one repository that the call names (specification, Repository constraint).
 */
import type { LoadedFacts } from '../facts/facts.ts';
import { isForContent } from '../policy/content-rules.ts';
import { decide } from '../policy/decide.ts';
import type { Ask, Facts, Grant, Instant } from '../policy/facts.ts';
import { entryFor } from '../policy/operation-index.ts';
import type { AppPermissions } from '../policy/platform-rules.ts';
import { isFromTemplate } from '../policy/repos.ts';
import { namesAsk } from '../policy/rules/selection.ts';
import type { AppLimits } from '../token-source/app-installation.ts';
import type { Call } from './call.ts';

/** Matches the path of a judged call: normalised, with a repository that the grant lists. */
const IN_REPOSITORY = /^\/(?:repos\/([^/]+)\/([^/]+)|git\/([^/]+)\/([^/]+?)(?:\.git)?)(?:\/|$)/;

/**
 * Returns the limits. A grant without a list of repositories gives a token for the whole installation, so that agents without such a list
 * share tokens. Calls that name no repository (the few that a list allows, and creating a repository) get such a token too.
 */
export function appLimits(
  { action, path, git }: Pick<Call, 'action' | 'path' | 'git'>,
  loaded: LoadedFacts,
  { grant, further }: { grant: Grant | undefined; further: readonly string[] },
  now: Instant,
): AppLimits {
  const isLimited = grant?.constraints.repos !== undefined && !isFromTemplate({ method: action.method, path });
  const repository = isLimited ? (git?.repository ?? repositoryOf(path)) : undefined;
  const { platform } = loaded;
  const asked = { method: action.method, path };
  const ofOperation = platform && entryFor(platform.rules.appOperations, asked);
  const scopes = [action.scope, ...further].filter(
    (scope) => !ofOperation || (platform && isForContent(platform.rules.content, asked, scope)),
  );
  const wanted: { permissions: AppPermissions; scope: string }[] = [
    ...(ofOperation ? [{ permissions: ofOperation.permissions, scope: action.scope }] : []),
    ...scopes.flatMap((scope) => {
      const permissions = platform?.manifest.app_permissions?.[scope];
      return permissions ? [{ permissions, scope }] : [];
    }),
  ];
  return {
    ...(repository && { repository }),
    ...(wanted.length > 0 && {
      permissions: highest(
        wanted.map(({ permissions, scope: used }) =>
          permissionsOf(permissions, (scope) => isAllowed(scope, used, loaded, grant, now)),
        ),
      ),
    }),
  };
}

const LEVELS = ['read', 'write', 'admin'];

/** Returns, by permission, the highest access of all. */
function highest(all: readonly Record<string, string>[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, access] of all.flatMap((one) => Object.entries(one)))
    if (LEVELS.indexOf(access) > LEVELS.indexOf(found[name] ?? '')) found[name] = access;
  return found;
}

function repositoryOf(path: string): AppLimits['repository'] {
  const [, owner, name, gitOwner, gitName] = IN_REPOSITORY.exec(path) ?? [];
  if (owner !== undefined && name !== undefined) return { owner, name };
  return gitOwner !== undefined && gitName !== undefined ? { owner: gitOwner, name: gitName } : undefined;
}

function permissionsOf(wanted: AppPermissions, isAllowed: (scope: string) => boolean): Record<string, string> {
  return Object.fromEntries(
    Object.entries(wanted).flatMap(([name, one]) => {
      if (typeof one === 'string') return [[name, one]];
      return isAllowed(one.if_allowed) ? [[name, one.access]] : [];
    }),
  );
}

/**
 * Whether a scope is allowed unconditionally under the call's own grant; a permission whose scope a rule holds or may refuse is not added
 * to the token. `used`: the scope of the call.
 */
function isAllowed(
  scope: string,
  used: string,
  { facts }: LoadedFacts,
  grant: Grant | undefined,
  now: Instant,
): boolean {
  if (grant === undefined || !grant.scopes.includes(scope)) return false;
  const { platformId, connectionId } = grant;
  const ask = { platformId, scope, ...(connectionId !== null && { connectionId }) };
  const verdict = decide(facts, ask, now);
  if (verdict.kind !== 'allow' || verdict.conditional || verdict.grant?.id !== grant.id) return false;
  return !isNarrowed(ask, used, facts);
}

/**
 * Whether a rule holds or refuses operations of `ask`'s scope only when called under `used` (pushes, for example), which `decide` without a
 * concrete call does not cover. A rule that names both scopes was already applied to the call itself.
 */
function isNarrowed(ask: Ask, used: string, { guardrails, policy, platform }: Facts): boolean {
  return [...guardrails.rules, ...(policy?.rules ?? [])].some(
    (rule) =>
      rule.effect !== 'allow' &&
      rule.effect !== 'mask' &&
      rule.scopes !== undefined &&
      namesAsk(rule, ask) &&
      !namesAsk(rule, { ...ask, scope: used }) &&
      (platform === undefined || rule.coverage(platform.rules, used) !== 'none'),
  );
}
