/**
 * Computes how many of a scope's operations a rule's `methods` and `endpoints` cover: a standing question has a scope but no call, so a
 * rule applies when it covers all operations, and may apply when it covers some.
 */
import type { Method, Rule } from '../facts.ts';
import { compilePattern, type Pattern, type Relation, relate } from '../pattern.ts';
import type { Operation, PlatformRules } from '../platform-rules.ts';

type Narrowing = { effect: Rule['effect']; methods: readonly Method[] | undefined; endpoints: Pattern[] | undefined };

/** Returns the `coverage` of a rule. Results are cached with the rule, as long as the platform's rules live. */
export function coverageOf(narrowing: Narrowing): Rule['coverage'] {
  if (narrowing.methods === undefined && narrowing.endpoints === undefined) return () => 'all';
  const known = new WeakMap<PlatformRules, Map<string, Relation>>();
  return (platform, scope) => {
    const scopes = known.get(platform) ?? new Map<string, Relation>();
    known.set(platform, scopes);
    // Only scopes of the manifest are cached, so that invented scopes in questions use no memory.
    const operations = platform.scopes.get(scope);
    if (operations === undefined || operations.length === 0) return 'some';
    const found =
      scopes.get(scope) ?? summary(callsOf(operations, platform).map((one) => coverage(narrowing, one, platform)));
    scopes.set(scope, found);
    return found;
  };
}

/** `isTool`: the calls are those of tools. */
type Calls = { method: Method; path: Pattern; isTool: boolean };

const LISTING: Calls = { method: 'GET', path: compilePattern('/tools', 'path'), isTool: false };

/** Returns the calls that operations stand for; on an MCP platform, also the listing of its tools. */
function callsOf(operations: readonly Operation[], platform: PlatformRules): Calls[] {
  const calls = operations.map((operation) => {
    const [method, path] = httpForm(operation, platform);
    return { method, path, isTool: operation.kind === 'tool' };
  });
  return platform.kind === 'mcp' ? [...calls, LISTING] : calls;
}

function coverage(narrowing: Narrowing, { method, path, isTool }: Calls, platform: PlatformRules): Relation {
  const { effect, methods } = narrowing;
  if (methods !== undefined && !methods.includes(method)) {
    // Which of the tools destroy is not known here; the rule applies to those that do (see `actsAs`).
    const mayActAs = isTool && effect !== 'allow' && methods.includes('DELETE');
    return mayActAs && relationTo(narrowing, path, platform) !== 'none' ? 'some' : 'none';
  }
  return relationTo(narrowing, path, platform);
}

function relationTo({ effect, endpoints }: Narrowing, path: Pattern, platform: PlatformRules): Relation {
  if (endpoints === undefined) return 'all';
  const tightening = platform.allowEncodedSlash ? 'any_with_slashes' : 'any';
  const relations = endpoints.map((endpoint) => relate(endpoint, path, effect === 'allow' ? 'exact' : tightening));
  if (relations.includes('all')) return 'all';
  return relations.includes('some') ? 'some' : 'none';
}

/** Returns the calls that an operation stands for (see `classify`): a POST to the GraphQL endpoint, or to a tool's path. */
function httpForm(operation: Operation, platform: PlatformRules): [Method, Pattern] {
  switch (operation.kind) {
    case 'http':
      return [operation.method, operation.path];
    case 'graphql':
      return ['POST', compilePattern(platform.kind === 'graphql' ? '/' : (platform.graphqlPath ?? '/**'), 'path')];
    case 'tool':
      return ['POST', compilePattern(`/tools/${operation.name.source}`, 'path')];
  }
}

function summary(relations: readonly Relation[]): Relation {
  if (relations.every((relation) => relation === 'all')) return 'all';
  return relations.every((relation) => relation === 'none') ? 'none' : 'some';
}
