/** Scopes that a platform does not have, in the words of a refusal. */
import type { PlatformRules } from './platform-rules.ts';

const MOST_SHOWN = 100;

/**
 * `; platform shop has no scope "orders:read", but "shop:orders.read"`, or nothing where the manifest has the scope: of operations, or
 * asked for by content. The end of a refusal's sentence.
 */
export function unknownScope(platformId: string, scope: string, { scopes, content }: PlatformRules): string {
  if (scopes.has(scope) || content.some((rule) => rule.scope === scope)) return '';
  const written = scope.slice(0, MOST_SHOWN);
  const actions = [fold(written), fold(actionOf(written))];
  const meant = [...scopes.keys()].find((name) => actions.includes(fold(actionOf(name))));
  const but = meant === undefined ? '' : `, but ${JSON.stringify(meant)}`;
  return `; platform ${platformId} has no scope ${JSON.stringify(written)}${but}`;
}

/** What stands behind the platform's id, which many leave out or write in another way. */
const actionOf = (scope: string): string => scope.slice(scope.indexOf(':') + 1);
const fold = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
