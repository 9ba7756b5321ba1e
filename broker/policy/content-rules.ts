/**
 * Operations whose content decides which scopes they need: a commit that writes a workflow needs more than one that writes a page. Such a call falls under the
 * scope of the rule, and needs the scope of its endpoint as well, unless its query names another operation.
 */

import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { type CallAsk, readMembers } from './call-ask.ts';
import { argumentsOf } from './graphql/arguments.ts';
import type { GraphqlCall } from './graphql/graphql.ts';
import { parameterNames } from './names.ts';
import { compilePattern, type Pattern } from './pattern.ts';
import type { Classified, ContentRule, ContentRuleSource, Operation, PlatformRules } from './platform-rules.ts';
import { POINTER, pointerNames, walkPointer } from './pointer.ts';
import { foldPath } from './spelling.ts';

const NONE: readonly ContentRule[] = Object.freeze([]);

/** @throws Error with a sentence that describes the problem */
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

/** Adds to each scope the operations that it covers for some contents: checks of a scope as a whole need them. */
export function addContentScopes(scopes: Map<string, Operation[]>, rules: readonly ContentRule[]): void {
  for (const { operation, scope } of rules) {
    if (scope === null) continue;
    const known = scopes.get(scope) ?? [];
    if (!known.some(({ source }) => source === operation.source)) scopes.set(scope, [...known, operation]);
  }
}

/** Returns the rules that apply to the content of a REST call, one for each scope; usually none. */
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

/**
 * Adds the scopes that a call needs for its content to those of its endpoint: the call falls under any of the former, and the grant must include all of them
 * and one of the latter. A rule about the query only replaces those of the endpoint. In no scope (`scopes` is empty) when the query names two operations.
 */
export function withContent(endpoint: Classified, found: readonly ContentRule[] = NONE): Classified {
  if (found.length === 0) return endpoint;
  const scopes = found.flatMap(({ scope }) => scope ?? []);
  const ofQuery = found.filter(({ isOfBody }) => !isOfBody);
  if (scopes.length < found.length || ofQuery.length > 1) return { ...endpoint, scopes: [] };
  const required = scopes.map((scope) => [scope]);
  return { ...endpoint, scopes, required: ofQuery.length > 0 ? required : [...required, endpoint.scopes] };
}

/**
 * Returns the scopes that a call needs besides the one under which it is made: of each list of `required`, the first that the grant includes, or else the
 * first. `scope`: the one under which it is made.
 */
export function furtherScopes({ required = [] }: Classified, scope: string, granted: readonly string[]): string[] {
  const lists = required.filter((one) => !one.includes(scope));
  return [...new Set(lists.flatMap((one) => one.find((each) => granted.includes(each)) ?? one[0] ?? []))];
}

/** Returns why no scope covers a call to which these rules apply (see `withContent`), and what the agent can do. */
export function whyInNoScope(found: readonly ContentRule[]): string {
  const refused = found.find(({ scope }) => scope === null);
  if (refused)
    return `a call with \`${refused.source}\` is in no scope of this platform, regardless of grants${refused.pointer ? ': leave it out' : ''}`;
  const parts = found.map(({ source, scope }) => `${scope} for \`${source}\``);
  return `the call names two operations in its query, ${parts.join(' and ')}: send each in a separate call`;
}

/** Whether the body of a REST call may ask for another scope than its endpoint does. */
export const dependsOnContent = (rules: readonly ContentRule[], call: CallAsk): boolean =>
  rules.some((rule) => rule.isOfBody && isAbout(rule, call));

/** Whether the body of a past call, which is not known, needed this scope. */
export const neededByBody = (rules: readonly ContentRule[], call: CallAsk, scope: string): boolean =>
  rules.some((rule) => rule.isOfBody && rule.scope === scope && isAbout(rule, call));

/** Whether calls of this endpoint may need the scope for their content. */
export const isForContent = (
  rules: readonly ContentRule[],
  call: Pick<CallAsk, 'method' | 'path'>,
  scope: string,
): boolean => rules.some((rule) => rule.scope === scope && isAbout(rule, call));

const isAbout = ({ operation }: ContentRule, { method, path }: Pick<CallAsk, 'method' | 'path'>): boolean =>
  operation.kind === 'http' && operation.method === method && operation.path.matchesAnySpelling(path);

/** Returns the same for the root fields of a GraphQL call, by the name of the field. */
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
 * Whether a rule applies to a body or to arguments. A value that cannot be read as a path matches: it may be any path. In a form, the encoded text is
 * compared, also where an agent gives the value as JSON: `false` is a text there, and null an empty one.
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

/** Returns a value as a form encodes it (broker/egress/credential-search/form.ts). */
const textOf = (value: JsonValue): JsonValue =>
  typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;

/** Whether a path in any spelling matches: `./a//b`, `a\b` and `A/B` may all be the file `a/b`. */
function matchesPath(paths: readonly Pattern[], text: string): boolean {
  const segments = text.split(/[/\\]/).filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..') || segments.length === 0) return true;
  const folded = [foldPath(segments)];
  return paths.some((pattern) => pattern.matchesAnySpelling(`/${text}`, folded));
}

/** Whether the query names the member: some servers also read members of a body from the query, which no legitimate call needs. */
function isNamedInQuery({ pointer }: ContentRule, query: string): boolean {
  if (query === '') return false;
  const names = [...new URLSearchParams(query.replaceAll(';', '&')).keys()];
  return names.some((name) => parameterNames(name).includes(pointer?.[0] ?? ''));
}
