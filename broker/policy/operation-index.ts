/**
 * Finds the most specific entry of a manifest for an operation. Manifests have hundreds of scope rules, matched on every governed call: a tree of path
 * segments returns a few candidates, and the pattern itself decides, so the tree can never allow more than the patterns.
 */
import type { CallAsk, Method } from './call-ask.ts';
import { compilePattern, type Pattern } from './pattern.ts';
import type { Classified, HttpIndex, NameIndex, Operation, OperationIndex } from './platform-rules.ts';
import { isFolded, isPlainPath, type Spelling, spellingsOf } from './spelling.ts';

/** One operation, with every scope that lists it. */
type IndexedRule = { operation: string; pattern: Pattern; scopes: readonly string[] };

type Entry = { pattern: Pattern; answer: Classified };
type Node = { literals: Map<string, Node>; any: Node | undefined; rest: Entry[]; here: Entry[] };
type Tree = { exact: Node; folded: Node; foldsItself: boolean };

/** Builds the index, once for each version of a platform. */
export function indexOperations(
  scopes: ReadonlyMap<string, readonly Operation[]>,
  graphqlEndpoint: string | undefined,
): OperationIndex {
  const known = new Map<string, { operation: Operation; scopes: string[] }>();
  for (const [scope, operations] of scopes) {
    for (const operation of operations) {
      const one = known.get(operation.source) ?? { operation, scopes: [] };
      one.scopes.push(scope);
      known.set(operation.source, one);
    }
  }
  const http: (IndexedRule & { method: Method })[] = [];
  const names = { query: [] as IndexedRule[], mutation: [] as IndexedRule[], tool: [] as IndexedRule[] };
  for (const { operation, scopes } of known.values()) {
    const rule = { operation: operation.source, scopes };
    if (operation.kind === 'http') http.push({ ...rule, method: operation.method, pattern: operation.path });
    else if (operation.kind === 'tool') names.tool.push({ ...rule, pattern: operation.name });
    else names[operation.operation].push({ ...rule, pattern: operation.field });
  }
  return {
    http: indexHttpRules(http),
    query: indexNames(names.query),
    mutation: indexNames(names.mutation),
    tool: indexNames(names.tool),
    graphqlEndpoint: graphqlEndpoint === undefined ? undefined : compilePattern(graphqlEndpoint, 'path'),
  };
}

function indexHttpRules(rules: readonly (IndexedRule & { method: Method })[]): HttpIndex {
  const trees = new Map<Method, Tree>();
  for (const rule of rules) {
    const tree = trees.get(rule.method) ?? { exact: newNode(), folded: newNode(), foldsItself: true };
    trees.set(rule.method, tree);
    const entry = entryOf(rule);
    const folded = spellingsOf(rule.pattern.source)[0] ?? [];
    insert(tree.exact, rule.pattern.segments, entry);
    insert(tree.folded, folded, entry);
    if (!isFolded(rule.pattern.source)) tree.foldsItself = false;
  }
  return {
    find(method, path) {
      const tree = trees.get(method);
      if (tree === undefined) return undefined;
      const segments = path.slice(1).split('/');
      const exact = mostSpecific(candidates(tree.exact, segments).filter(({ pattern }) => pattern.matches(path)));
      if (exact === undefined || (tree.foldsItself && isPlainPath(path))) return exact?.answer;
      const spellings = spellingsOf(path);
      const stronger = spellings
        .flatMap((spelling) => candidates(tree.folded, spelling))
        .filter(
          ({ pattern }) => pattern.specificity > exact.specificity && pattern.matchesAnySpelling(path, spellings),
        );
      const other = mostSpecific(stronger);
      return other === undefined ? exact.answer : narrow(exact.answer, other.answer);
    },
  };
}

function indexNames(rules: readonly IndexedRule[]): NameIndex {
  const literal = new Map<string, Entry>();
  const wild: Entry[] = [];
  for (const rule of rules) {
    if (rule.pattern.source.includes('*')) wild.push(entryOf(rule));
    else literal.set(rule.pattern.source, entryOf(rule));
  }
  return {
    find: (name) => literal.get(name)?.answer ?? mostSpecific(wild.filter((e) => e.pattern.matches(name)))?.answer,
  };
}

function newNode(): Node {
  return { literals: new Map(), any: undefined, rest: [], here: [] };
}

function entryOf(rule: IndexedRule): Entry {
  return { pattern: rule.pattern, answer: classified(rule.scopes, [rule.operation]) };
}

function classified(scopes: readonly string[], operations: readonly string[]): Classified {
  return Object.freeze({
    kind: 'classified' as const,
    scopes: Object.freeze([...new Set(scopes)]),
    operations: Object.freeze([...new Set(operations)]),
  });
}

function insert(root: Node, segments: readonly string[], entry: Entry): void {
  let node = root;
  for (const segment of segments) {
    if (segment === '**') {
      node.rest.push(entry);
      return;
    }
    if (segment.includes('*')) {
      node.any ??= newNode();
      node = node.any;
    } else {
      const next = node.literals.get(segment) ?? newNode();
      node.literals.set(segment, next);
      node = next;
    }
  }
  node.here.push(entry);
}

function candidates(root: Node, segments: Spelling): Entry[] {
  const found: Entry[] = [];
  walk(root, segments, 0, found);
  return found;
}

function walk(node: Node, segments: Spelling, at: number, found: Entry[]): void {
  for (const entry of node.rest) found.push(entry);
  const segment = segments[at];
  if (segment === undefined) {
    for (const entry of node.here) found.push(entry);
    return;
  }
  const literal = node.literals.get(segment);
  if (literal !== undefined) walk(literal, segments, at + 1, found);
  if (node.any !== undefined) walk(node.any, segments, at + 1, found);
}

/** Merges all rules of the highest specificity; usually there is one, whose result is precomputed. */
function mostSpecific(found: readonly Entry[]): { answer: Classified; specificity: number } | undefined {
  let top: Entry[] = [];
  for (const entry of found) {
    const best = top[0]?.pattern.specificity ?? Number.NEGATIVE_INFINITY;
    if (entry.pattern.specificity > best) top = [entry];
    else if (entry.pattern.specificity === best) top.push(entry);
  }
  const first = top[0];
  if (first === undefined) return undefined;
  const { specificity } = first.pattern;
  if (top.length === 1) return { answer: first.answer, specificity };
  const scopes = top.flatMap((entry) => entry.answer.scopes);
  return {
    answer: classified(
      scopes,
      top.flatMap((entry) => entry.answer.operations),
    ),
    specificity,
  };
}

function narrow(exact: Classified, other: Classified): Classified | undefined {
  const scopes = exact.scopes.filter((scope) => other.scopes.includes(scope));
  return scopes.length === 0 ? undefined : classified(scopes, [...exact.operations, ...other.operations]);
}

/** Returns the most specific entry for a call; undefined when none matches. Paths are matched byte for byte: another spelling matches no entry. */
export function entryFor<Entry extends { operation: Operation }>(
  entries: readonly Entry[],
  call: Pick<CallAsk, 'method' | 'path'>,
): Entry | undefined {
  let found: { entry: Entry; specificity: number } | undefined;
  for (const entry of entries) {
    const { operation } = entry;
    if (operation.kind !== 'http' || operation.method !== call.method || !operation.path.matches(call.path)) continue;
    const { specificity } = operation.path;
    if (found === undefined || specificity > found.specificity) found = { entry, specificity };
  }
  return found?.entry;
}
