/**
 * Determines what a GraphQL call would do, with a real parser and under limits, so that a mutation never passes as a query. Calls that cannot be inspected (a
 * persisted query, a subscription, an incremental answer) are reported as opaque, never guessed at.
 */

import {
  type ArgumentNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type ObjectFieldNode,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql/language';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { present } from '../../runtime/present.ts';

export type GraphqlCall =
  | {
      kind: 'read';
      operation: 'query' | 'mutation';
      /** Root fields, including those in fragments and those that a directive would skip. */
      roots: readonly FieldNode[];
      variables: JsonObject;
      definition: OperationDefinitionNode;
      /** As it was sent, with its fragments, whose fields have arguments, too. */
      document: DocumentNode;
    }
  /** Well-formed, but it does not contain what the platform would execute. `why`: a sentence for the agent. */
  | { kind: 'opaque'; why: string }
  | { kind: 'malformed'; error: string };

/** Hostile cases, GQ-05. Aliases and fields are counted with every fragment expanded. */
export const GRAPHQL_LIMITS = {
  characters: 65_536,
  tokens: 2_000,
  depth: 15,
  rootFields: 20,
  aliases: 20,
  fields: 2_000,
} as const;

/** GraphQL over HTTP, Request Parameters. */
const MEMBERS = ['query', 'operationName', 'variables', 'extensions'];
/** Names under which servers accept a stored document in place of the one that is sent, or even with precedence over it. */
const STORED_DOCUMENT = /^(?:id|(?:doc|document|query|operation|persisted).*(?:id|hash|query)|hash|sha256hash)$/i;
const INCREMENTAL = new Set(['defer', 'stream']);

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;
type Size = { depth: number; aliases: number; fields: number };

/** Thrown and caught in this file only. */
class Refusal extends Error {}
class Opaque extends Error {}

/**
 * @param body the body of the call (`data`), already parsed without duplicate names
 * @returns never throws; `malformed` carries a sentence for the agent, to be answered as a 400
 */
export function parseGraphqlCall(body: JsonObject): GraphqlCall {
  try {
    return read(body);
  } catch (error) {
    if (error instanceof Opaque) return { kind: 'opaque', why: error.message };
    if (error instanceof Refusal) return { kind: 'malformed', error: error.message };
    throw error;
  }
}

function read(body: JsonObject): GraphqlCall {
  const { text, operationName, variables } = parameters(body);
  const document = parseDocument(text);
  const fragments = fragmentsOf(document);
  const definition = selectOperation(document, operationName);
  if (definition.operation === 'subscription')
    throw new Opaque('data.query is a subscription; only queries and mutations are accepted');
  const sizes = new Map<string, Size>();
  for (const [name, fragment] of fragments) sizes.set(name, measure(fragment.selectionSet, fragments, sizes, [name]));
  checkSize(measure(definition.selectionSet, fragments, sizes, []));
  const roots = rootFields(definition.selectionSet, fragments, new Set());
  if (roots.length === 0) throw new Refusal('data.query selects no field');
  const limit = GRAPHQL_LIMITS.rootFields;
  if (roots.length > limit) throw new Refusal(`data.query has ${roots.length} root fields; the limit is ${limit}`);
  for (const root of roots) refuseRepeatedNames(root.arguments ?? []);
  refuseRepeatedVariables(definition);
  return { kind: 'read', operation: definition.operation, roots, variables, definition, document };
}

function parameters(body: JsonObject): { text: string; operationName: string | undefined; variables: JsonObject } {
  const { query, operationName = null, variables = null, extensions = null } = body;
  const extra = Object.keys(body).filter((name) => !MEMBERS.includes(name));
  // Apollo's persisted queries, and any other extension that makes a server execute something other than the document.
  const stored = extra.find((name) => STORED_DOCUMENT.test(name));
  if (stored !== undefined)
    throw new Opaque(
      `data has a member ${JSON.stringify(stored.slice(0, 64))}, which names a stored document; send the document itself in data.query`,
    );
  if (!isEmpty(extensions))
    throw new Opaque(
      'data.extensions is not accepted (for example, persisted queries); send the document itself in data.query',
    );
  if (query === undefined) throw new Refusal('data.query is missing; a GraphQL call carries its document there');
  if (typeof query !== 'string') throw new Refusal('data.query is not a string; one call carries one document');
  if (extra.length > 0) {
    const name = JSON.stringify(extra[0]);
    throw new Refusal(`data has a member ${name}; a GraphQL call takes query, operationName and variables`);
  }
  if (operationName !== null && (typeof operationName !== 'string' || operationName === '')) {
    throw new Refusal('data.operationName is not the name of an operation; leave it out, or give one');
  }
  if (variables !== null && !isObject(variables)) throw new Refusal('data.variables is not an object');
  return { text: query, operationName: operationName ?? undefined, variables: variables ?? {} };
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmpty(value: JsonValue): boolean {
  return value === null || (isObject(value) && Object.keys(value).length === 0);
}

function parseDocument(text: string): DocumentNode {
  const { characters, tokens } = GRAPHQL_LIMITS;
  if (text.length > characters) throw new Refusal(`data.query has more than ${characters} characters`);
  try {
    return parse(text, { noLocation: true, maxLexicalTokens: tokens });
  } catch (error) {
    // The parser's message quotes the document.
    const why = error instanceof Error ? error.message.slice(0, 300).toWellFormed() : 'syntax error';
    throw new Refusal(`data.query is not a GraphQL document: ${why}`);
  }
}

/** Two fragments with the same name would be read differently by different servers (GraphQL, Fragment Name Uniqueness). */
function fragmentsOf(document: DocumentNode): Fragments {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === 'OperationDefinition') continue;
    if (definition.kind !== 'FragmentDefinition')
      throw new Refusal('data.query defines types; only operations are accepted');
    const name = definition.name.value;
    if (fragments.has(name)) throw new Refusal(`data.query defines the fragment ${name} twice`);
    fragments.set(name, definition);
  }
  return fragments;
}

/** GraphQL, GetOperation(), and the uniqueness rules that it relies on. */
function selectOperation(document: DocumentNode, wanted: string | undefined): OperationDefinitionNode {
  const operations = document.definitions.filter((definition) => definition.kind === 'OperationDefinition');
  const names = operations.map((operation) => operation.name?.value);
  if (operations.length > 1 && (names.includes(undefined) || new Set(names).size < names.length)) {
    throw new Refusal('data.query has several operations; each needs a different name');
  }
  if (wanted === undefined && operations.length > 1) {
    throw new Refusal('data.query holds several operations; say which one runs in data.operationName');
  }
  const selected = wanted === undefined ? operations[0] : operations.find((one) => one.name?.value === wanted);
  if (selected !== undefined) return selected;
  throw new Refusal(
    wanted === undefined
      ? 'data.query holds no operation'
      : `data.query holds no operation named ${JSON.stringify(wanted)}`,
  );
}

/** Computes the size with all fragments expanded, without expanding them: each fragment is measured once. */
function measure(
  set: SelectionSetNode,
  fragments: Fragments,
  sizes: Map<string, Size>,
  inside: readonly string[],
): Size {
  const total = { depth: 0, aliases: 0, fields: 0 };
  const add = (size: Size, levels: number) => {
    total.depth = Math.max(total.depth, size.depth + levels);
    total.aliases += size.aliases;
    total.fields += size.fields;
  };
  for (const selection of set.selections) {
    refuseIncremental(selection.directives);
    if (selection.kind === 'Field') {
      const below = selection.selectionSet ? measure(selection.selectionSet, fragments, sizes, inside) : undefined;
      add(below ?? { depth: 0, aliases: 0, fields: 0 }, 1);
      total.fields += 1;
      total.aliases += selection.alias === undefined ? 0 : 1;
    } else if (selection.kind === 'InlineFragment') {
      add(measure(selection.selectionSet, fragments, sizes, inside), 0);
    } else {
      const name = selection.name.value;
      if (inside.includes(name)) throw new Refusal(`the fragment ${name} in data.query contains itself`);
      const fragment = fragments.get(name);
      if (fragment === undefined) throw new Refusal(`data.query uses the fragment ${name} without defining it`);
      const known = sizes.get(name) ?? measure(fragment.selectionSet, fragments, sizes, [...inside, name]);
      sizes.set(name, known);
      add(known, 0);
    }
  }
  return total;
}

function refuseIncremental(directives: readonly DirectiveNode[] | undefined): void {
  const found = directives?.find((directive) => INCREMENTAL.has(directive.name.value));
  if (found) throw new Opaque(`data.query has @${found.name.value}, which is not supported; remove it`);
}

function checkSize({ depth, aliases, fields }: Size): void {
  const limits = GRAPHQL_LIMITS;
  const over = (what: string) => new Refusal(`data.query, with its fragments written out, has more than ${what}`);
  if (depth > limits.depth) throw over(`${limits.depth} levels`);
  if (aliases > limits.aliases) throw over(`${limits.aliases} aliases`);
  if (fields > limits.fields) throw over(`${limits.fields} fields`);
}

/** GraphQL, Argument Uniqueness and Input Object Field Uniqueness: servers that do not check use either value. */
function refuseRepeatedNames(members: readonly (ArgumentNode | ObjectFieldNode)[]): void {
  const seen = new Set<string>();
  for (const { name, value } of members) {
    if (seen.has(name.value)) throw new Refusal(`data.query gives ${name.value} twice in one place`);
    seen.add(name.value);
    refuseRepeatedNamesIn(value);
  }
}

/** GraphQL, Variable Uniqueness: either default might be used. */
function refuseRepeatedVariables({ variableDefinitions = [] }: OperationDefinitionNode): void {
  const names = variableDefinitions.map(({ variable }) => variable.name.value);
  const repeated = names.find((name, i) => names.indexOf(name) < i);
  if (repeated !== undefined) throw new Refusal(`data.query defines the variable ${repeated} twice`);
}

function refuseRepeatedNamesIn(value: ValueNode): void {
  if (value.kind === 'ObjectValue') refuseRepeatedNames(value.fields);
  else if (value.kind === 'ListValue') value.values.forEach(refuseRepeatedNamesIn);
}

function rootFields(set: SelectionSetNode, fragments: Fragments, seen: Set<string>): FieldNode[] {
  return set.selections.flatMap((selection) => {
    if (selection.kind === 'Field') return [selection];
    if (selection.kind === 'InlineFragment') return rootFields(selection.selectionSet, fragments, seen);
    const name = selection.name.value;
    if (seen.has(name)) return [];
    seen.add(name);
    return rootFields(present(fragments.get(name), 'fragment').selectionSet, fragments, seen);
  });
}
