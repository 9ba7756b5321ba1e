/**
 * Lists what a call does and its agent may do for the first time (`first_time` in conditions): its operations, the recipients that it names, the repository
 * that it is about.
 */
import type { CallAsk, SeenValueKind } from './call-ask.ts';
import { classify, isGraphql } from './operation.ts';
import type { PlatformRules } from './platform-rules.ts';
import { recipientsOf } from './recipients.ts';
import { repositoryOf } from './repos.ts';
import { toolOf } from './tool.ts';

/** A call with more recipients counts as a first time each time: each recipient is stored in a row that is never deleted. */
const MAX_RECIPIENTS = 100;

/** `value`: includes the platform id, so that it is unique among all values of this kind. */
export type SeenValue = { kind: SeenValueKind; value: string };

/**
 * `isChange`: what was only read before counts as a first time when a call changes it. `unknown`: the kinds for which the call's values cannot be determined;
 * they count as a first time, and are not stored.
 */
export type SeenValues = { isChange: boolean; known: readonly SeenValue[]; unknown: readonly SeenValueKind[] };

/** Returns what a call does. `rules`: those of the platform `platformId`. Pure; never throws. */
export function seenValuesOf(platformId: string, rules: PlatformRules, call: CallAsk): SeenValues {
  const known: SeenValue[] = [];
  const unknown: SeenValueKind[] = [];
  const note = (kind: SeenValueKind, value: string) => known.push({ kind, value: `${platformId} ${value}` });
  const operations = operationsOf(rules, call);
  if (operations.length === 0) unknown.push('operation');
  for (const operation of operations) note('operation', operation);
  const { named, isClear } = recipientsOf(rules, call);
  const isTold = isClear && named.length <= MAX_RECIPIENTS;
  if (!isTold) unknown.push('recipient');
  if (named.length <= MAX_RECIPIENTS) for (const recipient of named) note('recipient', recipient);
  const repository = isGraphql(rules, call) ? namelessRepository(rules) : repositoryOf(call);
  if (repository === 'unknown') unknown.push('repository');
  else if (repository !== undefined) note('repository', repository.name);
  return { isChange: !isRead(call, operations), known, unknown };
}

/** Returns the operations of the manifest; for an MCP server the tool itself, since a manifest may cover many tools with one pattern. */
function operationsOf(rules: PlatformRules, call: CallAsk): readonly string[] {
  if (call.git) return [call.git.service];
  const tool = rules.kind === 'mcp' ? toolOf(call.path) : undefined;
  if (tool !== undefined) return [`tool ${tool}`];
  const found = classify(rules, call);
  return found.kind === 'classified' ? found.operations : [];
}

function isRead({ method, git }: CallAsk, operations: readonly string[]): boolean {
  if (git) return git.service === 'git-upload-pack' || method === 'GET';
  return method === 'GET' || (operations.length > 0 && operations.every((source) => source.startsWith('query ')));
}

/** A GraphQL document names repositories by ids and variables, so its repository is unknown on a platform that has repositories. */
function namelessRepository(rules: PlatformRules): 'unknown' | undefined {
  for (const operations of rules.scopes.values())
    for (const operation of operations)
      if (operation.kind === 'http' && operation.path.source.startsWith('/repos/')) return 'unknown';
  return undefined;
}
