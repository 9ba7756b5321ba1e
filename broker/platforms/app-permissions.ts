/** The permissions that an App needs for scopes, and the form at which GitHub registers one with them. */
import { BUILTIN_PLATFORMS } from './builtin.ts';

/** What a coding agent needs: reading and writing code, issues and pull requests, and what CI says of them. */
const USUAL_SCOPES = [
  'contents.write',
  'issues.write',
  'pulls.write',
  'pulls.review',
  'search.read',
  'checks.read',
  'statuses.read',
  'actions.read',
];

/** There is no such scope; the message is its name. */
export class NoSuchScope extends Error {}

/**
 * The most that any of the scopes needs, by permission: `read` or `write`. `scopes`: with or without `codehost:`. What single operations
 * need (`app_operations`) is not asked for: the rest of their scope works without. Throws NoSuchScope.
 */
export function permissionsFor(scopes: readonly string[] = USUAL_SCOPES): Record<string, string> {
  const known = BUILTIN_PLATFORMS.github.app_permissions ?? {};
  const most: Record<string, string> = {};
  for (const one of scopes) {
    const wanted = known[one.includes(':') ? one : `codehost:${one}`];
    if (wanted === undefined) throw new NoSuchScope(one);
    for (const [name, access] of Object.entries(wanted)) {
      // What it is allowed for another scope, it gets with that scope.
      if (typeof access !== 'string') continue;
      if (most[name] !== 'write') most[name] = access;
    }
  }
  return most;
}

/**
 * The form for a new App at github.com, filled in by parameters of its address
 * (https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-using-url-parameters). It is private and hears of no events.
 */
export function registrationForm(permissions: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams({
    url: 'https://www.npmjs.com/package/agent-broker',
    public: 'false',
    webhook_active: 'false',
    ...permissions,
  });
  return `https://github.com/settings/apps/new?${query}`;
}
