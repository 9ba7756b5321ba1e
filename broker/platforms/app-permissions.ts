/** The permissions that a GitHub App needs for scopes, and the registration form for an App with them. */
import { BUILTIN_PLATFORMS } from './builtin.ts';

/** The scopes that a coding agent needs: reading and writing code, issues and pull requests, and reading CI results. */
const DEFAULT_SCOPES = [
  'contents.write',
  'issues.write',
  'pulls.write',
  'pulls.review',
  'search.read',
  'checks.read',
  'statuses.read',
  'actions.read',
];

/** Thrown for an unknown scope; the message is its name. */
export class NoSuchScope extends Error {}

/**
 * Returns, by permission, the highest access that any of the scopes needs: `read` or `write`. `scopes`: with or without `codehost:`. Permissions of single
 * operations (`app_operations`) are not included: the rest of their scope works without them. Throws NoSuchScope.
 */
export function permissionsFor(scopes: readonly string[] = DEFAULT_SCOPES): Record<string, string> {
  const known = BUILTIN_PLATFORMS.github.app_permissions ?? {};
  const most: Record<string, string> = {};
  for (const one of scopes) {
    const wanted = known[one.includes(':') ? one : `codehost:${one}`];
    if (wanted === undefined) throw new NoSuchScope(one);
    for (const [name, access] of Object.entries(wanted)) {
      // A permission that depends on another scope (`if_allowed`) is included with that scope.
      if (typeof access !== 'string') continue;
      if (most[name] !== 'write') most[name] = access;
    }
  }
  return most;
}

/**
 * Returns the URL of the form for a new App at github.com, filled in by query parameters
 * (https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-using-url-parameters). The App is private and receives no events.
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
