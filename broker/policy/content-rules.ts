/**
 * Operations of which the contents decide what they need: a commit that writes a workflow needs more than one that writes a
 * page. Such a call is under the scope of the rule, and not under the scope of its endpoint.
 */

import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { type CallAsk, readMembers } from './call-ask.ts';
import type { GraphqlCall } from './graphql.ts';
import { argumentsOf } from './graphql-arguments.ts';
import { parameterNames } from './names.ts';
import { compilePattern, type Pattern } from './pattern.ts';
import type { Classified, ContentRule, ContentRuleSource, Operation, PlatformRules } from './platform-rules.ts';
import { POINTER, pointerNames, walkPointer } from './pointer.ts';
import { foldPath } from './spelling.ts';

const NONE: readonly ContentRule[] = Object.freeze([]);

/** @throws Error with a sentence that says what is wrong */
export function compileContentRule(
  operation: Operation,
  { pointer, paths, unless = [], is, in: place, scope }: ContentRuleSource,
): ContentRule {
  if (pointer !== undefined && !POINTER.test(pointer))
    throw new Error(`content_scopes "${operation.source}": "${pointer}" is not a JSON pointer`);
  return {
    operation,
    pointer: pointer === undefined ? undefined : pointerNames(pointer),
    paths: paths?.map((path) => compilePattern(path, 'path')),
    unless,
    isNull: is === null,
    isOfBody: pointer !== undefined && place === undefined,
    scope,
    source: pointer ?? operation.source,
  };
}

/** A scope covers the operation for some contents: what is asked about the scope as a whole has to know. */
export function addContentScopes(scopes: Map<string, Operation[]>, rules: readonly ContentRule[]): void {
  for (const { operation, scope } of rules) {
    if (scope === null) continue;
    const known = scopes.get(scope) ?? [];
    if (!known.some(({ source }) => source === operation.source)) scopes.set(scope, [...known, operation]);
  }
}

/** The rules that the contents of a REST call are under, one for each scope; mostly none. */
export function rulesByContent(
  { content, isForm }: Pick<PlatformRules, 'content' | 'isForm'>,
  call: CallAsk,
): readonly ContentRule[] {
  let found = NONE;
  for (const rule of content) {
    if (!isAbout(rule, call) || names(found, rule)) continue;
    const applying = () => applies(rule, readMembers(call), call.isForm ?? isForm);
    if (!rule.pointer || isNamedInQuery(rule, call.query) || (rule.isOfBody && applying())) found = [...found, rule];
  }
  return found;
}

const names = (found: readonly ContentRule[], { scope }: ContentRule): boolean =>
  found.some((one) => one.scope === scope);

/** What the contents of a call need stands in place of what its endpoint needs. No one scope is two. */
export function scopesOf(endpoint: Classified, found: readonly ContentRule[] = NONE): readonly string[] {
  const [first] = found;
  if (first === undefined) return endpoint.scopes;
  return found.length === 1 && first.scope !== null ? [first.scope] : [];
}

/** Why rules of which `scopesOf` makes no scope leave a call in none, and what an agent can do then. */
export function whyInNoScope(found: readonly ContentRule[]): string {
  const refused = found.find(({ scope }) => scope === null);
  if (refused)
    return `a call with \`${refused.source}\` is in no scope of this platform, whatever is granted${refused.pointer ? ': leave it out' : ''}`;
  const parts = found.map(({ source, scope }) => `${scope} for \`${source}\``);
  return `the call needs two scopes, ${parts.join(' and ')}, and has one: send each in a call of its own`;
}

/** Whether the body of a REST call may ask for another scope than its endpoint does. */
export const dependsOnContent = (rules: readonly ContentRule[], call: CallAsk): boolean =>
  rules.some((rule) => rule.isOfBody && isAbout(rule, call));

const isAbout = ({ operation }: ContentRule, { method, path }: CallAsk): boolean =>
  operation.kind === 'http' && operation.method === method && operation.path.matchesAnySpelling(path);

/** The same for the root fields of a GraphQL call, by the name of the field. */
export function rulesByArguments(
  rules: readonly ContentRule[],
  { operation: kind, roots, definition, variables }: Extract<GraphqlCall, { kind: 'read' }>,
): ReadonlyMap<string, readonly ContentRule[]> {
  const found = new Map<string, ContentRule[]>();
  for (const rule of rules) {
    const { operation } = rule;
    if (operation.kind !== 'graphql' || operation.operation !== kind) continue;
    for (const root of roots) {
      const name = root.name.value;
      const known = found.get(name) ?? [];
      if (!operation.field.matches(name) || names(known, rule)) continue;
      if (applies(rule, argumentsOf(root, definition, variables), false)) found.set(name, [...known, rule]);
    }
  }
  return found;
}

/**
 * What cannot be read as a path counts: it may be any. Of a form the text counts that is written there, also where an agent names the
 * value as JSON: `false` is one, and null an empty one.
 */
function applies({ pointer, paths, unless, isNull }: ContentRule, subject: JsonObject, isForm: boolean): boolean {
  if (pointer === undefined) return true;
  let found = false;
  const unset = () => {
    found = true;
  };
  if (isNull) {
    walkPointer(subject, pointer, { value: () => {}, deadEnd: () => {}, unset });
    return found;
  }
  const counts = (value: JsonValue): boolean => {
    if (paths === undefined) return value !== false && !unless.some((one) => (isForm ? textOf(one) : one) === value);
    return typeof value !== 'string' || matchesPath(paths, value);
  };
  walkPointer(subject, pointer, {
    value: (value) => {
      found ||= counts(isForm ? textOf(value) : value);
    },
    deadEnd: () => {
      if (paths !== undefined) found = true;
    },
    ...(isForm && {
      unset: () => {
        found ||= counts('');
      },
    }),
  });
  return found;
}

/** As a form has a value (broker/egress/form.ts). */
const textOf = (value: JsonValue): JsonValue =>
  typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;

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
  return names.some((name) => parameterNames(name).includes(pointer?.[0] ?? ''));
}
