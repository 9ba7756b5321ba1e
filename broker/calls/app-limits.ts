/**
 * What the token of an App's installation is limited to for one call: the permissions of the call's scope, and, on a grant that
 * lists repositories, the one that the call names (specification, Repository constraint).
 */
import type { LoadedFacts } from '../facts/facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { decide } from '../policy/decide.ts';
import type { Grant, Instant } from '../policy/facts.ts';
import { isFromTemplate } from '../policy/repos.ts';
import type { AppLimits } from '../token-source/app-installation.ts';
import type { Call } from './call.ts';

/** A call that was judged: its path is in its one form, and its repository is one that the grant lists. */
const IN_REPOSITORY = /^\/(?:repos\/([^/]+)\/([^/]+)|git\/([^/]+)\/([^/]+?)(?:\.git)?)(?:\/|$)/;

/**
 * The limits. Without a list of repositories in the grant the token is good for all of the installation, so that agents without such
 * a list share tokens; and so it is where a call names none: the few that a list allows, and creating one.
 */
export function appLimits(
  { action, path, git }: Pick<Call, 'action' | 'path' | 'git'>,
  loaded: LoadedFacts,
  grant: Grant | undefined,
  now: Instant,
): AppLimits {
  const isLimited = grant?.constraints.repos !== undefined && !isFromTemplate({ method: action.method, path });
  const repository = isLimited ? (git?.repository ?? repositoryOf(path)) : undefined;
  const wanted = loaded.platform?.manifest.app_permissions?.[action.scope];
  return {
    ...(repository && { repository }),
    ...(wanted && { permissions: permissionsOf(wanted, (scope) => isAllowed(scope, loaded, grant, now)) }),
  };
}

function repositoryOf(path: string): AppLimits['repository'] {
  const [, owner, name, gitOwner, gitName] = IN_REPOSITORY.exec(path) ?? [];
  if (owner !== undefined && name !== undefined) return { owner, name };
  return gitOwner !== undefined && gitName !== undefined ? { owner: gitOwner, name: gitName } : undefined;
}

type Wanted = NonNullable<Manifest['app_permissions']>[string];

function permissionsOf(wanted: Wanted, isAllowed: (scope: string) => boolean): Record<string, string> {
  return Object.fromEntries(
    Object.entries(wanted).flatMap(([name, one]) => {
      if (typeof one === 'string') return [[name, one]];
      return isAllowed(one.if_allowed) ? [[name, one.access]] : [];
    }),
  );
}

/** Whether a scope may be used as it is, on the grant that the call uses: what a rule holds or may refuse is not given along. */
function isAllowed(scope: string, { facts }: LoadedFacts, grant: Grant | undefined, now: Instant): boolean {
  if (grant === undefined || !grant.scopes.includes(scope)) return false;
  const { platformId, connectionId } = grant;
  const verdict = decide(facts, { platformId, scope, ...(connectionId !== null && { connectionId }) }, now);
  return verdict.kind === 'allow' && !verdict.conditional && verdict.grant?.id === grant.id;
}
