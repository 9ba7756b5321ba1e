/** Warns of what a platform's entry states about operations that none of its scopes has, and about members that no body has: it limits, masks or refuses nothing. */
import type { Manifest } from '../platforms/manifest.ts';
import { parseOperation } from '../policy/operation.ts';
import { type Pattern, relate } from '../policy/pattern.ts';
import type { Operation } from '../policy/platform-rules.ts';
import { didYouMean } from '../runtime/did-you-mean.ts';
import type { Checked } from './check-document.ts';
import { namedSegmentWarning } from './named-segment.ts';
import type { Path } from './problems.ts';

const FIELDS = ['recipients', 'content_scopes', 'refs', 'masks'] as const;

/**
 * @param entry the platform as the file writes it, without the parts of a built-in one
 * @param manifest the complete manifest
 */
export function checkOperations(
  entry: Partial<Record<(typeof FIELDS)[number], unknown>> & {
    scopes?: Readonly<Record<string, readonly string[]>> | undefined;
  },
  manifest: Manifest,
  path: Path,
  found: Checked,
): void {
  for (const [scope, rules] of Object.entries(entry.scopes ?? {}))
    for (const [i, rule] of rules.entries()) {
      const message = namedSegmentWarning(rule);
      if (message !== undefined) found.warnings.push({ path: [...path, 'scopes', scope, i], message });
    }
  if (FIELDS.every((field) => entry[field] === undefined)) return;
  const texts = new Set(Object.values(manifest.scopes).flat());
  const operations = [...texts].map(parseOperation);
  for (const field of FIELDS) {
    for (const [text, stated] of Object.entries(entry[field] ?? {})) {
      warnOfPointers(stated, [...path, field, text], found);
      if (texts.has(text) || isWithoutEffect(stated)) continue;
      const stating = parseOperation(text);
      if (isOfGraphqlEndpoint(stating, manifest) || operations.some((one) => mayBeSame(stating, one))) continue;
      found.warnings.push({
        path: [...path, field, text],
        at: 'key',
        message: `no scope of the platform has such an operation, so this applies to no call.${didYouMean(text, texts)}`,
      });
    }
  }
}

/** Warns of JSON pointers that end with a slash: they are of a member without a name, which no body has. */
function warnOfPointers(stated: unknown, path: Path, found: Checked): void {
  if (!Array.isArray(stated)) return;
  for (const [i, one] of stated.entries()) {
    const pointer = typeof one === 'string' ? one : (one?.pointer ?? one?.at);
    if (typeof pointer !== 'string' || !/^\/.*\/$/s.test(pointer)) continue;
    found.warnings.push({
      path: [...path, i],
      message: `"${pointer}" ends with "/", so it is of a member without a name. Write "${pointer.slice(0, -1)}".`,
    });
  }
}

/** An empty list removes a built-in entry, or states that no ref is written; what is in no scope is refused also if no scope has it. */
const isWithoutEffect = (stated: unknown): boolean => Array.isArray(stated) && stated.every(isRefusalOfAll);

const isRefusalOfAll = (rule: unknown): boolean =>
  typeof rule === 'object' && rule !== null && 'scope' in rule && rule.scope === null && !('pointer' in rule);

/** A request that is decided by its document, although it has a method and a path. */
const isOfGraphqlEndpoint = (operation: Operation, { kind, graphql }: Manifest): boolean =>
  operation.kind === 'http' && (kind !== 'rest' || graphql !== undefined);

function mayBeSame(a: Operation, b: Operation): boolean {
  if (a.kind === 'http') return b.kind === 'http' && a.method === b.method && relate(a.path, b.path) !== 'none';
  if (a.kind === 'graphql') return b.kind === 'graphql' && a.operation === b.operation && mayMeet(a.field, b.field);
  return b.kind === 'tool' && mayMeet(a.name, b.name);
}

/** Whether a name may match both. Two patterns are taken to meet. */
const mayMeet = (a: Pattern, b: Pattern): boolean =>
  a.matches(b.source) || b.matches(a.source) || (a.source.includes('*') && b.source.includes('*'));
