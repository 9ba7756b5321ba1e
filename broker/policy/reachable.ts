/**
 * Whether the constraints of a grant on repositories and refs leave any callable operation under a scope. Code search and GraphQL cannot be limited to
 * repositories, so every call of them is refused (specification, Repository constraint). Used for what agents are offered; a call itself is checked by
 * checks.ts.
 */
import { type Constraints, limitsRefs } from './constraints.ts';
import { relate } from './pattern.ts';
import type { Operation, PlatformRules, RefRule } from './platform-rules.ts';
import { GIT_PATHS, isNeverInRepositories } from './repos.ts';

type Rules = Pick<PlatformRules, 'scopes' | 'refs' | 'allowEncodedSlash'>;
type HttpOperation = Extract<Operation, { kind: 'http' }>;

/** Returns `isReachable` for a platform's rules. Results are cached as long as the rules live: by scope, and by the relevant part of the constraints. */
export function reachability(rules: Rules): PlatformRules['isReachable'] {
  const known = new Map<string, boolean>();
  return (scope, constraints) => {
    const operations = rules.scopes.get(scope);
    const limits = whatCounts(constraints);
    // Tools of an MCP server change at any time; and results are not cached for scopes that are not in the manifest.
    if (limits === undefined || operations === undefined || operations.length === 0) return true;
    const key = `${limits} ${scope}`;
    const found = known.get(key) ?? operations.some((operation) => !isNeverAllowed(rules, constraints, operation));
    known.set(key, found);
    return found;
  };
}

/** Returns a cache key, equal for constraints that refuse the same operations as a whole; undefined when there is no such constraint. */
function whatCounts(constraints: Constraints): string | undefined {
  const { repos, allow_repo_creation: creation = false, refs, ref_changes: changes } = constraints;
  if (repos === undefined && !limitsRefs(constraints)) return undefined;
  return JSON.stringify([repos && repos.length > 0, creation, refs && refs.length > 0, changes?.toSorted()]);
}

/** Whether every call of an operation is refused. Never returns true when a call could pass. */
function isNeverAllowed(rules: Rules, constraints: Constraints, operation: Operation): boolean {
  // What a GraphQL call or a tool reaches is not in its path.
  if (operation.kind !== 'http') return true;
  if (constraints.repos !== undefined && isNeverInRepositories(constraints, operation)) return true;
  return limitsRefs(constraints) && alwaysWritesOtherRefs(rules, constraints, operation);
}

function alwaysWritesOtherRefs(rules: Rules, constraints: Constraints, { method, path }: HttpOperation): boolean {
  if (method === 'GET' || GIT_PATHS.some((one) => relate(one, path) !== 'none')) return false;
  const spelling = rules.allowEncodedSlash ? 'any_with_slashes' : 'any';
  const about = rules.refs.flatMap(({ operation, writes }) =>
    operation.kind === 'http' && operation.method === method ? [{ path: operation.path, writes }] : [],
  );
  if (about.every((one) => relate(one.path, path, spelling) === 'none')) return true;
  return about.some((one) => relate(one.path, path) === 'all' && isAlwaysRefused(one.writes, constraints));
}

const isAlwaysRefused = (writes: RefRule['writes'], { refs, ref_changes: changes }: Constraints): boolean =>
  typeof writes === 'string' ||
  writes.some(({ action, unless }) => !unless && (refs?.length === 0 || changes?.includes(action) === false));
