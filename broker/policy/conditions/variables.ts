/** The variables of a condition, and the member chains that start at them. */

import type { parse } from '@bufbuild/cel';
import { present } from '../../runtime/present.ts';

export type Expr = ReturnType<typeof parse>['expr'];
export type Case<K> = Extract<Expr['exprKind'], { case: K }>;

/** The shapes of the variables; an `open` map may have any member, other maps have exactly these. */
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
/** Members that exist on some calls only: git requests, GraphQL calls, and calls for a person where the platform supports it. */
const OPTIONAL = new Set(['request.git', 'request.graphql', 'caller.verified']);
const TYPE_NAMES = new Set(['int', 'uint', 'double', 'bool', 'string', 'list', 'map', 'null_type', 'type']);

export function isVariable(name: string): boolean {
  return Object.hasOwn(VARIABLES, name);
}

/** @throws Error for a name that is not a variable, a variable of an enclosing loop or a type. */
export function checkName(name: string, loops: readonly string[]): void {
  if (loops.includes(name) || isVariable(name) || TYPE_NAMES.has(name)) return;
  throw new Error(`there is no \`${name}\`; a condition knows ${Object.keys(VARIABLES).join(', ')}`);
}

/** Returns `request.body["a"].b` as `['request', 'body', 'a', 'b']`; undefined for an expression that is not such a chain. */
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
 * Whether the member at the end of a chain may be missing on a call: members of the body, of the query, of the headers and of loop items, `request.git`,
 * `request.graphql` and `caller.verified`. @throws Error when no such member can exist.
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

/** Whether the member at the end of a chain is a bool on every call. */
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
/** Words that the language reserves (CEL, Syntax: RESERVED, and its literals). */
const RESERVED = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(
    ' ',
  ),
);

/** Formats a member as a condition writes it: `request.body.amount`, `request.headers["x-reason"]`. */
export function spell([variable = '', ...members]: readonly string[]): string {
  return members.reduce(
    (before, name) =>
      IDENTIFIER.test(name) && !RESERVED.has(name) ? `${before}.${name}` : `${before}[${JSON.stringify(name)}]`,
    variable,
  );
}

/** Returns the test that makes reading a member safe: for `request.headers["x-reason"]`, `"x-reason" in request.headers`. */
export function presenceTest(member: string): string {
  const [, before, name] = /^(.*)\[("(?:[^"\\]|\\.)*")\]$/s.exec(member) ?? [];
  return before === undefined ? `has(${member})` : `${name} in ${before}`;
}

/** Returns the value of a text literal; undefined for any other expression. */
export function textOf(expr: Expr | undefined): string | undefined {
  if (expr?.exprKind.case !== 'constExpr') return undefined;
  const literal = expr.exprKind.value.constantKind;
  return literal.case === 'stringValue' ? literal.value : undefined;
}

function known(members: { readonly [member: string]: Shape }): string {
  const names = Object.keys(members);
  return names.length === 0 ? '' : `; there are ${names.join(', ')}`;
}
