/** Which scopes of a platform may cover a call, by the operations in its manifest. */
import type { WholePlatform } from '../../broker/console/answers.ts';
import { parseOperation } from '../../broker/policy/operation.ts';

type Call = { method: string; endpoint: string; query?: unknown };

/**
 * Returns those scopes that list an operation which matches the call, or that such an operation may need because of its content; all of them if none does.
 * The broker decides: this only saves requests for scopes of other operations. A GraphQL document is not parsed; a scope is likely if the document contains
 * the name of one of its fields.
 */
export function likelyScopes(platform: WholePlatform, granted: readonly string[], call: Call): string[] {
  const contents = Object.entries((platform.manifest.content_scopes ?? {}) as Record<string, { scope: string }[]>);
  const likely = new Set([
    ...platform.scopes.filter(({ rules }) => rules.some((rule) => mayMatch(rule, call))).map(({ scope }) => scope),
    ...contents.filter(([rule]) => mayMatch(rule, call)).flatMap(([, needs]) => needs.map(({ scope }) => scope)),
  ]);
  const found = granted.filter((scope) => likely.has(scope));
  return found.length > 0 ? found : [...granted];
}

function mayMatch(rule: string, { method, endpoint, query }: Call): boolean {
  const operation = parseOperation(rule);
  const path = endpoint.replace(/\?.*$/s, '');
  if (operation.kind === 'http') return operation.method === method && operation.path.matches(path);
  if (operation.kind === 'tool') return operation.name.matches(path.replace(/^\/tools\//, ''));
  const names = typeof query === 'string' ? (query.match(/[_A-Za-z][_0-9A-Za-z]*/g) ?? []) : [];
  return names.some((name) => operation.field.matches(name));
}
