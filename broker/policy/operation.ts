/**
 * The operations of a platform: the entries of a manifest's rules, and the scopes under which a call falls. The most specific
 * rule classifies an endpoint; an endpoint that no rule matches is a mismatch.
 */

import { bodyKindsProblem } from './body-kinds.ts';
import { type CallAsk, METHODS, UnreadBody } from './call-ask.ts';
import {
  addContentScopes,
  compileContentRule,
  dependsOnContent,
  rulesByArguments,
  rulesByContent,
  whyInNoScope,
  withContent,
} from './content-rules.ts';
import { followProblem } from './follow-redirects.ts';
import { compileFreeRule } from './free-members.ts';
import { readGraphqlCall } from './graphql/call.ts';
import { whyUncovered } from './graphql/uncovered.ts';
import { nameList } from './names.ts';
import { indexOperations } from './operation-index.ts';
import { compilePattern } from './pattern.ts';
import type { Classified, Operation, PlatformRules, RefusedParameter, RulesSource } from './platform-rules.ts';
import { reachability } from './reachable.ts';
import { compileRecipientPointer } from './recipient-pointer.ts';
import { compileRefRule } from './refs/rules.ts';
import type { Spelling } from './spelling.ts';
import { findListing, findTool, toolOf } from './tool.ts';

/**
 * `why`: what the agent can change, when there is more to say than that no scope covers the call. `unread`: the call is unclassified because the body was not
 * read.
 */
export type Classification =
  | Classified
  | { kind: 'unclassified'; why?: string; unread?: true }
  | { kind: 'malformed'; error: string };

const HTTP = /^([A-Z]+) (\/\S*)$/;
const GRAPHQL = /^(query|mutation) ([_A-Za-z*][_0-9A-Za-z*]*)$/;
const TOOL = /^tool ([A-Za-z0-9_.*-]{1,128})$/;
const ALLOWED = 'write "GET /path/*", "query name*", "mutation name" or "tool name_*"';
const UNCLASSIFIED: Classification = Object.freeze({ kind: 'unclassified' });

/** @throws Error with a sentence that describes what is allowed */
export function parseOperation(text: string): Operation {
  const [, method, path] = HTTP.exec(text) ?? [];
  if (path !== undefined) {
    const known = METHODS.find((one) => one === method);
    if (known === undefined) throw new Error(`"${text}": ${method} is not a method; use one of ${METHODS.join(', ')}`);
    return { source: text, kind: 'http', method: known, path: compilePattern(path, 'path') };
  }
  const [, operation, field] = GRAPHQL.exec(text) ?? [];
  if (field !== undefined) {
    const kind = operation === 'query' ? 'query' : 'mutation';
    return { source: text, kind: 'graphql', operation: kind, field: compilePattern(field, 'text') };
  }
  const [, tool] = TOOL.exec(text) ?? [];
  if (tool !== undefined) return { source: text, kind: 'tool', name: compilePattern(tool, 'text') };
  throw new Error(`"${text}" is not an operation; ${ALLOWED}`);
}

/** Returns undefined when an operation may appear in a platform's manifest, otherwise a sentence that describes what is allowed there. */
export function misplaced(operation: Operation, platform: Pick<RulesSource, 'kind' | 'graphql'>): string | undefined {
  const { source, kind } = operation;
  if (platform.kind === 'mcp')
    return kind === 'tool' ? undefined : `"${source}": an mcp platform has tools: "tool name_*"`;
  if (kind === 'tool') return `"${source}": only a platform of kind mcp has tools`;
  if (platform.kind === 'graphql') {
    return kind === 'graphql'
      ? undefined
      : `"${source}": a graphql platform has operations: "query name*", "mutation name"`;
  }
  if (kind === 'graphql') {
    return platform.graphql
      ? undefined
      : `"${source}": a rest platform takes this only with a GraphQL endpoint: graphql: { path: /graphql }`;
  }
  return kind === 'http' && operation.path.source === platform.graphql?.path
    ? `"${source}": calls there are classified by their document; write "query name*" or "mutation name"`
    : undefined;
}

/** @throws Error with a sentence that names the scope or recipient rule and describes what is allowed there */
export function compilePlatformRules(source: RulesSource): PlatformRules {
  const read = (text: string, where: string): Operation => {
    try {
      const operation = parseOperation(text);
      const problem = misplaced(operation, source);
      if (problem !== undefined) throw new Error(problem);
      return operation;
    } catch (error) {
      throw new Error(`${where}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const scopes = new Map(
    Object.entries(source.scopes).map(([scope, texts]) => [scope, texts.map((text) => read(text, `scope ${scope}`))]),
  );
  const recipients = Object.entries(source.recipients ?? {}).map(([text, pointers]) => ({
    operation: read(text, 'recipients'),
    pointers: pointers.map((pointer) => compileRecipientPointer(pointer, text)),
  }));
  const index = indexOperations(scopes, source.graphql?.path);
  const content = Object.entries(source.content_scopes ?? {}).flatMap(([text, rules]) =>
    rules.map((rule) => compileContentRule(read(text, 'content_scopes'), rule)),
  );
  const refs = Object.entries(source.refs ?? {}).map(([text, rule]) => compileRefRule(read(text, 'refs'), rule));
  const follow = (source.follow ?? []).map((text) => {
    const operation = read(text, 'follow');
    const problem = followProblem(operation);
    if (problem !== undefined) throw new Error(`follow: ${problem}`);
    return operation;
  });
  const entries = <Value, Entry>(
    where: string,
    values: Readonly<Record<string, Value>> | undefined,
    entry: (operation: Operation, value: Value) => Entry,
  ) => Object.entries(values ?? {}).map(([text, value]) => entry(read(text, where), value));
  const bodies = Object.entries(source.bodies ?? {}).map(([text, named]) => {
    const operation = read(text, 'bodies');
    const kinds = [named].flat();
    const problem = bodyKindsProblem(operation, kinds);
    if (problem !== undefined) throw new Error(`bodies: ${problem}`);
    return { operation, kinds };
  });
  const free = Object.entries(source.free ?? {}).map(([text, members]) => compileFreeRule(read(text, 'free'), members));
  addContentScopes(scopes, content);
  const allowEncodedSlash = source.encoded_slash === true;
  return {
    kind: source.kind,
    scopes,
    recipients,
    content,
    refs,
    pushOptions: source.git_push_options ?? [],
    follow,
    baseUrls: entries('base_urls', source.base_urls, (operation, baseUrl) => ({ operation, baseUrl })),
    answerUrls: entries('answer_urls', source.answer_urls, (operation, members) => ({ operation, members })),
    masks: entries('masks', source.masks, (operation, members) => ({ operation, members })),
    errorStatus: entries('error_status', source.error_status, (operation, status) => ({ operation, status })),
    appOperations: entries('app_operations', source.app_operations, (operation, permissions) => ({
      operation,
      permissions,
    })),
    bodies,
    free,
    ...(source.graphql && { graphqlPath: source.graphql.path }),
    allowEncodedSlash,
    decodeSlash: source.encoded_slash === 'as_slash',
    isForm: source.body === 'form',
    rawBodies: source.raw_bodies ?? [source.body ?? 'json'],
    refused: refusedNames(source.refused_parameters ?? []),
    index,
    isReachable: reachability({ scopes, refs, allowEncodedSlash }),
  };
}

const refusedNames = (refused: readonly RefusedParameter[]): PlatformRules['refused'] => ({
  query: nameList(refused.map((one) => (typeof one === 'string' ? one : one.name))),
  body: nameList(refused.filter((one) => typeof one === 'string')),
});

/**
 * Returns the scopes under which a call falls. Pure and fast: this runs on every governed call.
 *
 * The endpoint of a platform of kind `graphql` is `/`, which stands for its `base_url` itself, and of a tool of kind `mcp` it is `/tools/<name>` with the
 * arguments in `data`, so that policies and receipts can name the tool; both are POST. A GET of `/tools` lists the tools of any scope. On a REST platform
 * with a GraphQL endpoint, a POST to that endpoint is classified by its document only.
 */
export function classify(rules: PlatformRules, call: CallAsk): Classification {
  if (rules.kind === 'graphql') return isGraphql(rules, call) ? classifyGraphql(rules, call) : UNCLASSIFIED;
  if (rules.kind === 'mcp')
    return (isPost(call) ? findTool(rules, call.path) : findListing(rules, call)) ?? UNCLASSIFIED;
  if (isGraphql(rules, call)) return classifyGraphql(rules, call);
  if (rules.index.graphqlEndpoint?.matchesAnySpelling(call.path)) return UNCLASSIFIED;
  const found = rules.index.http.find(call.method, call.path);
  if (found === undefined) return UNCLASSIFIED;
  if (call.body instanceof UnreadBody && dependsOnContent(rules.content, call))
    return {
      kind: 'unclassified',
      why: `what the call needs depends on its contents, and ${call.body.why}`,
      unread: true,
    };
  const needed = rulesByContent(rules, call);
  if (needed.length === 0) return found;
  const whole = withContent(found, needed);
  return whole.scopes.length === 0 ? { kind: 'unclassified', why: whyInNoScope(needed) } : whole;
}

/**
 * Whether an operation other than GraphQL matches a call, in any spelling of its path. Used by constraints. `spellings`: those of the path, to compute them
 * once for many operations.
 */
export function namesCall(
  operation: Operation,
  { kind }: PlatformRules,
  call: CallAsk,
  spellings?: readonly Spelling[],
): boolean {
  if (operation.kind === 'tool') return kind === 'mcp' && operation.name.matches(toolOf(call.path) ?? '');
  return (
    operation.kind === 'http' &&
    operation.method === call.method &&
    operation.path.matchesAnySpelling(call.path, spellings)
  );
}

function isPost(call: Pick<CallAsk, 'method'>): boolean {
  return call.method === 'POST';
}

/** Whether a call is classified by its GraphQL document. */
export function isGraphql(rules: PlatformRules, call: Pick<CallAsk, 'method' | 'path'>): boolean {
  return isPost(call) && (rules.kind === 'graphql' ? call.path === '/' : call.path === rules.graphqlPath);
}

/** Every root field must be covered; the call has the scopes that cover all of them. */
function classifyGraphql(rules: PlatformRules, call: CallAsk): Classification {
  // Several servers read `?query=` before they read the body.
  if (call.query !== '') return { kind: 'malformed', error: 'a GraphQL endpoint accepts no query string; use `data`' };
  const { body } = call;
  if (body instanceof UnreadBody)
    return { kind: 'malformed', error: `the document of a GraphQL call is judged, and ${body.why}` };
  const read = readGraphqlCall(body);
  if (read.kind === 'malformed') return read;
  if (read.kind === 'opaque') return { kind: 'unclassified', why: read.why };
  const fields = [...new Set(read.roots.map((root) => root.name.value))];
  // `__typename` returns no data and changes nothing; alone, it needs a rule like any field.
  const judged = fields.length > 1 ? fields.filter((field) => field !== '__typename') : fields;
  const needed = rulesByArguments(rules.content, read);
  const found = judged.map((field) => {
    const one = rules.index[read.operation].find(field);
    return one && withContent(one, needed.get(field));
  });
  const lists = found.map((one) => one?.scopes ?? []);
  const [first, ...others] = lists;
  const scopes = (first ?? []).filter((scope) => others.every((list) => list.includes(scope)));
  if (scopes.length === 0) return { kind: 'unclassified', why: whyUncovered(read.operation, judged, lists) };
  const required = found.flatMap((one) => one?.required ?? []);
  const operations = [...new Set(found.flatMap((one) => one?.operations ?? []))];
  return { kind: 'classified', scopes, operations, ...(required.length > 0 && { required }) };
}
