/** The variables of a condition, and the chains of members that lead into them. */

import type { parse } from '@bufbuild/cel';
import { present } from '../runtime/present.ts';

export type Expr = ReturnType<typeof parse>['expr'];
export type Case<K> = Extract<Expr['exprKind'], { case: K }>;

/** The variables; `open` maps may hold any member, others hold exactly these. */
type Shape = 'text' | 'truth' | 'time' | 'open' | { readonly [member: string]: Shape };
const VARIABLES: { readonly [name: string]: Shape } = {
  request: {
    method: 'text',
    endpoint: 'text',
    query: 'open',
    query_all: 'open',
    body: 'open',
    headers: 'open',
    refs: 'text',
    git: { service: 'text', refs: 'text', push_options: 'text' },
    graphql: { operation: 'text', fields: 'text' },
  },
  agent: {
    id: 'text',
    agent_id: 'text',
    name: 'text',
    owner_id: 'text',
    organisation_id: 'text',
    parent_agent_id: 'text',
    labels: 'open',
  },
  caller: { verified: 'truth' },
  first_time: { operation: 'truth', recipient: 'truth', repository: 'truth' },
  platform: 'text',
  scope: 'text',
  now: 'time',
};
/** Members that are there on some calls only: of git requests, GraphQL calls, and calls for a person whom the platform honours. */
const OPTIONAL = new Set(['request.git', 'request.graphql', 'caller.verified']);
const TYPE_NAMES = new Set(['int', 'uint', 'double', 'bool', 'string', 'list', 'map', 'null_type', 'type']);

export function isVariable(name: string): boolean {
  return Object.hasOwn(VARIABLES, name);
}

/** @throws Error for a name that is neither a variable, nor of a loop around it, nor a type. */
export function checkName(name: string, loops: readonly string[]): void {
  if (loops.includes(name) || isVariable(name) || TYPE_NAMES.has(name)) return;
  throw new Error(`there is no \`${name}\`; a condition knows ${Object.keys(VARIABLES).join(', ')}`);
}

/** `request.body["a"].b` as `['request', 'body', 'a', 'b']`; undefined for what is not such a chain. */
export function pathOf(expr: Expr, loops: readonly string[]): string[] | undefined {
  const { exprKind } = expr;
  if (exprKind.case === 'identExpr') {
    const { name } = exprKind.value;
    return loops.includes(name) || isVariable(name) ? [name] : undefined;
  }
  if (exprKind.case === 'selectExpr' && !exprKind.value.testOnly) {
    return pathOf(present(exprKind.value.operand, 'operand'), loops)?.concat(exprKind.value.field);
  }
  if (exprKind.case === 'callExpr' && exprKind.value.function === '_[_]') {
    const member = textOf(exprKind.value.args[1]);
    return member === undefined
      ? undefined
      : pathOf(present(exprKind.value.args[0], 'argument'), loops)?.concat(member);
  }
  return undefined;
}

/**
 * Whether the member at the end of a chain may be missing on a call: members of the body, of the query, of the headers and
 * of what a loop visits, `request.git`, `request.graphql` and `caller.verified`. @throws Error when there can be no such member.
 */
export function mayMiss(path: readonly string[], loops: readonly string[]): boolean {
  const [variable = '', ...rest] = path;
  let shape: Shape = loops.includes(variable) ? 'open' : present(VARIABLES[variable], 'variable of this name');
  for (const member of rest) {
    if (shape === 'open') return true;
    const members: { readonly [member: string]: Shape } = typeof shape === 'string' ? {} : shape;
    const next = Object.hasOwn(members, member) ? members[member] : undefined;
    if (next === undefined) {
      throw new Error(`\`${path.join('.')}\`: there is no member \`${member}\`${known(members)}`);
    }
    shape = next;
  }
  return OPTIONAL.has(path.join('.'));
}

/** Whether what stands at the end of a chain is a bool on every call. */
export function isTruth([variable = '', member = '', ...more]: readonly string[]): boolean {
  const shape = VARIABLES[variable];
  return (
    typeof shape === 'object' &&
    shape[member] === 'truth' &&
    more.length === 0 &&
    !OPTIONAL.has(`${variable}.${member}`)
  );
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** What the language keeps for itself (CEL, Syntax: RESERVED, and its literals). */
const RESERVED = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(
    ' ',
  ),
);

/** A member as a condition writes it: `request.body.amount`, `request.headers["x-reason"]`. */
export function spell([variable = '', ...members]: readonly string[]): string {
  return members.reduce(
    (before, name) =>
      IDENTIFIER.test(name) && !RESERVED.has(name) ? `${before}.${name}` : `${before}[${JSON.stringify(name)}]`,
    variable,
  );
}

/** The test that makes reading a member safe: of `request.headers["x-reason"]`, `"x-reason" in request.headers`. */
export function presenceTest(member: string): string {
  const [, before, name] = /^(.*)\[("(?:[^"\\]|\\.)*")\]$/s.exec(member) ?? [];
  return before === undefined ? `has(${member})` : `${name} in ${before}`;
}

/** The value of a text literal. */
export function textOf(expr: Expr | undefined): string | undefined {
  if (expr?.exprKind.case !== 'constExpr') return undefined;
  const literal = expr.exprKind.value.constantKind;
  return literal.case === 'stringValue' ? literal.value : undefined;
}

function known(members: { readonly [member: string]: Shape }): string {
  const names = Object.keys(members);
  return names.length === 0 ? '' : `; there are ${names.join(', ')}`;
}
