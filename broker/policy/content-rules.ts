/**
 * Operations of which the contents decide what they need: a commit that writes a workflow needs more than one that writes a
 * page. Such a call is under the scope of the rule, and not under the scope of its endpoint.
 */

import type { JsonObject } from '../../json/json-value.ts';
import { type CallAsk, readMembers } from './call-ask.ts';
import type { GraphqlCall } from './graphql.ts';
import { argumentsOf } from './graphql-arguments.ts';
import { parameterNames } from './names.ts';
import { compilePattern, type Pattern } from './pattern.ts';
import type { ContentRule, ContentRuleSource, Operation } from './platform-rules.ts';
import { POINTER, pointerNames, walkPointer } from './pointer.ts';
import { foldPath } from './spelling.ts';

const NONE: readonly string[] = Object.freeze([]);

/** @throws Error with a sentence that says what is wrong */
export function compileContentRule(
  operation: Operation,
  { pointer, paths, in: place, scope }: ContentRuleSource,
): ContentRule {
  if (!POINTER.test(pointer))
    throw new Error(`content_scopes "${operation.source}": "${pointer}" is not a JSON pointer`);
  return {
    operation,
    pointer: pointerNames(pointer),
    paths: paths?.map((path) => compilePattern(path, 'path')),
    isOfBody: place === undefined,
    scope,
  };
}

/** The scopes that the contents of a REST call need in place of its endpoint's; mostly none. */
export function scopesByContent(rules: readonly ContentRule[], call: CallAsk): readonly string[] {
  let needed = NONE;
  for (const rule of rules) {
    if (!isAbout(rule, call) || needed.includes(rule.scope)) continue;
    if (isNamedInQuery(rule, call.query) || (rule.isOfBody && applies(rule, readMembers(call))))
      needed = [...needed, rule.scope];
  }
  return needed;
}

/** Whether the body of a REST call may ask for another scope than its endpoint does. */
export const dependsOnContent = (rules: readonly ContentRule[], call: CallAsk): boolean =>
  rules.some((rule) => rule.isOfBody && isAbout(rule, call));

const isAbout = ({ operation }: ContentRule, { method, path }: CallAsk): boolean =>
  operation.kind === 'http' && operation.method === method && operation.path.matchesAnySpelling(path);

/** The same for the root fields of a GraphQL call, by the name of the field. */
export function scopesByArguments(
  rules: readonly ContentRule[],
  { operation: kind, roots, definition, variables }: Extract<GraphqlCall, { kind: 'read' }>,
): ReadonlyMap<string, readonly string[]> {
  const needed = new Map<string, string[]>();
  for (const rule of rules) {
    const { operation } = rule;
    if (operation.kind !== 'graphql' || operation.operation !== kind) continue;
    for (const root of roots) {
      const name = root.name.value;
      if (!operation.field.matches(name) || needed.get(name)?.includes(rule.scope)) continue;
      if (applies(rule, argumentsOf(root, definition, variables)))
        needed.set(name, [...(needed.get(name) ?? []), rule.scope]);
    }
  }
  return needed;
}

/** What cannot be read as a path counts: it may be any. */
function applies({ pointer, paths }: ContentRule, subject: JsonObject): boolean {
  let found = false;
  walkPointer(subject, pointer, {
    value: (value) => {
      if (paths === undefined) found ||= value !== false;
      else found ||= typeof value !== 'string' || matchesPath(paths, value);
    },
    deadEnd: () => {
      if (paths !== undefined) found = true;
    },
  });
  return found;
}

/** `./a//b`, `a\b` and `A/B` may all be the file `a/b`. */
function matchesPath(paths: readonly Pattern[], text: string): boolean {
  const segments = text.split(/[/\\]/).filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..') || segments.length === 0) return true;
  const folded = [foldPath(segments)];
  return paths.some((pattern) => pattern.matchesAnySpelling(`/${text}`, folded));
}

/** Some servers take the members of a body from the query too. Nobody needs that. */
function isNamedInQuery({ pointer }: ContentRule, query: string): boolean {
  if (query === '') return false;
  const names = [...new URLSearchParams(query.replaceAll(';', '&')).keys()];
  return names.some((name) => parameterNames(name).includes(pointer[0] ?? ''));
}
