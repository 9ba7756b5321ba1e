/** Validates the App fields of a manifest against each other; each field is valid by itself. */
import type { z } from 'zod';
import type { ManifestFields } from './manifest-fields.ts';

type Fields = Pick<z.infer<typeof ManifestFields>, 'kind' | 'auth' | 'scopes' | 'app_permissions' | 'app_operations'>;
type Problem = { path: (string | number)[]; message: string };

/** Every scope must be listed: a token for a scope without permissions would have all those of the installation. */
export function appProblems(manifest: Fields): Problem[] {
  const { kind, auth, scopes, app_permissions: permissions, app_operations: operations = {} } = manifest;
  const isApp = auth.type === 'app';
  const found: Problem[] = [];
  if (isApp && kind !== 'rest')
    found.push({ path: ['auth', 'type'], message: 'of an App is for platforms of kind rest only' });
  const unknown = 'is not one of the scopes above';
  const unknownIn = (path: string[], needed: (typeof operations)[string]): Problem[] =>
    Object.entries(needed).flatMap(([name, one]) =>
      typeof one === 'object' && !Object.hasOwn(scopes, one.if_allowed)
        ? [{ path: [...path, name, 'if_allowed'], message: unknown }]
        : [],
    );
  for (const [text, needed] of Object.entries(operations)) found.push(...unknownIn(['app_operations', text], needed));
  if (permissions === undefined) return found;
  for (const [scope, needed] of Object.entries(permissions)) {
    const path = ['app_permissions', scope];
    if (!Object.hasOwn(scopes, scope)) found.push({ path, message: unknown });
    found.push(...unknownIn(path, needed));
  }
  for (const scope of isApp ? Object.keys(scopes) : [])
    if (!Object.hasOwn(permissions, scope))
      found.push({
        path: ['app_permissions'],
        message: `has nothing for ${scope}; say what the App must be allowed for it, such as { metadata: read }`,
      });
  return found;
}
