/** Describes a scope that a platform does not have, for refusals. */
import type { PlatformRules } from './platform-rules.ts';

const MOST_SHOWN = 100;

/**
 * Returns the end of a refusal's sentence, such as `; platform shop has no scope "orders:read", but "shop:orders.read"`; empty when the manifest has the
 * scope, of operations or of content rules.
 */
export function unknownScope(platformId: string, scope: string, { scopes, content }: PlatformRules): string {
  if (scopes.has(scope) || content.some((rule) => rule.scope === scope)) return '';
  const written = scope.slice(0, MOST_SHOWN);
  const actions = [fold(written), fold(actionOf(written))];
  const meant = [...scopes.keys()].find((name) => actions.includes(fold(actionOf(name))));
  const but = meant === undefined ? '' : `, but ${JSON.stringify(meant)}`;
  return `; platform ${platformId} has no scope ${JSON.stringify(written)}${but}`;
}

/** Returns the part after the platform's id, which agents often omit or misspell. */
const actionOf = (scope: string): string => scope.slice(scope.indexOf(':') + 1);
const fold = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
