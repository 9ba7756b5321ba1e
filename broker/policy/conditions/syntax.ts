/**
 * Static checks of a condition: names, functions and literals that are wrong, a result that is not a bool, members that are read without `has()`, and a bound
 * on its cost.
 */

import { type CelFunc, CelScalar } from '@bufbuild/cel';
import { present } from '../../runtime/present.ts';
import { IN_MEMBER, TYPED } from './comparisons.ts';
import { compileRegex, compileZone, type Literals, RANGE } from './functions.ts';
import { comparesTyped, foldCompared, isFolded, type ResultType, TYPES } from './literals.ts';
import { type Case, checkName, type Expr, isTruth, isVariable, mayMiss, pathOf, spell, textOf } from './variables.ts';

type Call = Case<'callExpr'>['value'];

const OPERATORS = new Set(['_?_:_', '_&&_', '_||_', '_[_]', '@not_strictly_false']);
/** Bytes never occur in a request, and the library copies them at each step. */
const WITHHELD = new Set(['bytes']);

const MAX_NODES = 1000;
const MAX_LOOP_DEPTH = 3;

type Walk = {
  functions: readonly CelFunc[];
  literals: Literals;
  nodes: number;
  tested: Set<string>;
  read: Set<string>;
  /** The tests `"member" in map`, by the path of the member. */
  sought: { call: Call; member: string }[];
  /** Variables of loops over labels or names of headers. */
  names: Set<string>;
};

/**
 * Checks a parsed condition and puts a meter around each of its loops (the tree is changed in place).
 *
 * @returns the members that it reads without testing them with `has()`, such as `request.body.amount`.
 * @throws Error with a sentence for the author.
 */
export function checkSyntax(
  expr: Expr,
  functions: Iterable<CelFunc>,
  literals: Literals,
  result: ResultType = 'bool',
): string[] {
  const [tested, read, names] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const walk: Walk = { functions: [...functions], literals, nodes: 0, tested, read, sought: [], names };
  visit(expr, walk, []);
  // A condition that also reads the member means a map, where servers may otherwise see a list.
  for (const { call, member } of walk.sought) if (walk.read.has(member)) call.function = IN_MEMBER;
  if (result === 'bool') expectBool(expr, walk, 'the condition');
  else if (isNever('number', expr, walk)) throw new Error('the amount must be a number from 0 on, and is none');
  return [...walk.read].filter((path) => !walk.tested.has(path)).sort();
}

function visit(expr: Expr, walk: Walk, loops: readonly string[]): void {
  if (++walk.nodes > MAX_NODES) throw new Error('the condition is too long');
  foldCompared(expr, loops, walk.names);
  const path = pathOf(expr, loops);
  if (path !== undefined) notePath(path, walk, loops);
  const { exprKind } = expr;
  switch (exprKind.case) {
    case 'constExpr':
      checkLiteral(exprKind.value.constantKind, walk);
      break;
    case 'identExpr':
      checkName(exprKind.value.name, loops);
      break;
    case 'selectExpr':
      visitSelect(exprKind.value, walk, loops);
      break;
    case 'callExpr':
      visitCall(exprKind.value, walk, loops);
      break;
    case 'listExpr':
      for (const element of exprKind.value.elements) visit(element, walk, loops);
      break;
    case 'structExpr':
      if (exprKind.value.messageName !== '')
        throw new Error(`there is no message type \`${exprKind.value.messageName}\``);
      for (const entry of exprKind.value.entries) {
        if (entry.keyKind.case === 'mapKey') visit(entry.keyKind.value, walk, loops);
        visit(present(entry.value, 'value of an entry'), walk, loops);
      }
      break;
    case 'comprehensionExpr':
      visitLoop(exprKind.value, walk, loops);
      break;
    default:
      throw new Error('the condition holds an expression that is not supported');
  }
}

function visitSelect(select: Case<'selectExpr'>['value'], walk: Walk, loops: readonly string[]): void {
  const operand = present(select.operand, 'operand');
  if (select.testOnly) noteTest(operand, select.field, walk, loops);
  visit(operand, walk, loops);
}

function visitLoop(loop: Case<'comprehensionExpr'>['value'], walk: Walk, loops: readonly string[]): void {
  const name = loop.iterVar;
  if (isVariable(name) || loops.includes(name))
    throw new Error(`the loop variable \`${name}\` hides another \`${name}\``);
  const inner = [...loops, name, loop.accuVar];
  if (inner.length > 2 * MAX_LOOP_DEPTH)
    throw new Error(`loops (\`all\`, \`exists\`, \`map\` …) are nested at most ${MAX_LOOP_DEPTH} deep`);
  const range = present(loop.iterRange, 'range of a loop');
  visit(range, walk, loops);
  if (isFolded(range, loops)) walk.names.add(name);
  const before = walk.nodes;
  for (const part of [loop.accuInit, loop.loopCondition, loop.loopStep, loop.result])
    visit(present(part, 'part of a loop'), walk, inner);
  const constant: Expr = { ...range, exprKind: { case: 'constExpr', value: int(walk.nodes - before) } };
  const args = [range, constant];
  const metered = { $typeName: 'cel.expr.Expr.Call', function: RANGE, args } as Call;
  loop.iterRange = { ...range, exprKind: { case: 'callExpr', value: metered } };
  walk.names.delete(name);
}

function visitCall(call: Call, walk: Walk, loops: readonly string[]): void {
  // The parser leaves `has` as a call when its argument does not end in a member after a dot.
  if (call.function === 'has' && call.target === undefined)
    throw new Error(
      'has() takes a member such as request.body.amount; for a name with other characters write "x-reason" in request.headers',
    );
  const args = call.target === undefined ? call.args : [call.target, ...call.args];
  const literal = textOf(call.args[0]);
  if (call.function === '@in' && literal !== undefined) {
    const member = noteTest(present(call.args[1], 'argument'), literal, walk, loops);
    if (member !== undefined) walk.sought.push({ call, member });
  }
  for (const arg of args) visit(arg, walk, loops);
  if (['_&&_', '_||_', '!_'].includes(call.function))
    for (const arg of args) expectBool(arg, walk, `each side of ${call.function}`);
  if (call.function === '_?_:_') expectBool(present(args[0], 'argument'), walk, 'what stands before `?`');
  if (call.function === '_[_]') checkHeaderName(call, loops);
  if (OPERATORS.has(call.function)) return;
  if (overloads(call, walk).length === 0)
    throw new Error(`there is no function \`${call.function}\` with ${call.args.length} arguments here`);
  if (comparesTyped(call)) call.function += TYPED;
  else if (call.function === 'matches') {
    if (literal === undefined) throw new Error('`matches` takes its pattern as a text literal, not from the call');
    walk.literals.regexes.set(literal, compileRegex(literal));
  } else if (call.target !== undefined && /^get[A-Z]/.test(call.function) && call.args.length === 1) {
    if (literal === undefined) throw new Error(`\`${call.function}\` takes its time zone as a text literal`);
    const zone = compileZone(literal);
    if (zone !== undefined) walk.literals.zones.set(literal, zone);
  }
}

function overloads(call: Call, walk: Walk): CelFunc[] {
  if (WITHHELD.has(call.function) || call.function === RANGE) return [];
  const method = call.target !== undefined;
  return walk.functions.filter(
    (f) => f.name === call.function && (f.target !== undefined) === method && f.arguments.length === call.args.length,
  );
}

/** Whether the result of an expression is certainly of another type, at least in one of the cases of `? :`. */
function isNever(type: ResultType, expr: Expr, walk: Walk): boolean {
  const { exprKind } = expr;
  switch (exprKind.case) {
    case 'constExpr':
      return !TYPES[type].literals.has(exprKind.value.constantKind.case);
    case 'listExpr':
    case 'structExpr':
      return true;
    case 'comprehensionExpr': {
      const { accuInit, result } = exprKind.value;
      return isNever(
        type,
        present(result?.exprKind.case === 'identExpr' ? accuInit : result, 'result of a loop'),
        walk,
      );
    }
    case 'callExpr': {
      const call = exprKind.value;
      if (['_&&_', '_||_', '@not_strictly_false'].includes(call.function)) return type !== 'bool';
      if (call.function === '_[_]' || call.function === RANGE) return false;
      if (call.function === '_?_:_') return call.args.slice(1).some((arg) => isNever(type, arg, walk));
      const results = overloads(call, walk).map((f) => f.result);
      return !results.some((result) => result === CelScalar.DYN || TYPES[type].results.has(result));
    }
    default: {
      if (exprKind.case === 'selectExpr' && exprKind.value.testOnly) return type !== 'bool';
      const path = pathOf(expr, []);
      if (path?.[0] === undefined || !isVariable(path[0]) || mayMiss(path, [])) return false;
      return type !== 'bool' || !isTruth(path);
    }
  }
}

function expectBool(expr: Expr, walk: Walk, what: string): void {
  if (isNever('bool', expr, walk)) throw new Error(`${what} must be true or false, and is neither`);
}

function checkLiteral(literal: Case<'constExpr'>['value']['constantKind'], { literals }: Walk): void {
  if (literal.case === 'stringValue') literals.texts.add(literal.value);
  if (literal.case === 'bytesValue') throw new Error('bytes are not available in conditions');
  const outside = (value: bigint, least: bigint, most: bigint) => value < least || value > most;
  if (
    (literal.case === 'int64Value' && outside(literal.value, -(2n ** 63n), 2n ** 63n - 1n)) ||
    (literal.case === 'uint64Value' && outside(literal.value, 0n, 2n ** 64n - 1n))
  ) {
    throw new Error(`the number ${literal.value} does not fit into 64 bits`);
  }
}

function notePath(path: readonly string[], walk: Walk, loops: readonly string[]): void {
  if (mayMiss(path, loops)) walk.read.add(spell(path));
}

/** Records a test of a member, which makes reading that member safe, and so the members that lead to it: the test itself needs them. */
function noteTest(operand: Expr, field: string, walk: Walk, loops: readonly string[]): string | undefined {
  const path = pathOf(operand, loops);
  if (path === undefined) return undefined;
  mayMiss([...path, field], loops);
  const member = spell([...path, field]);
  walk.tested.add(member);
  return member;
}

function checkHeaderName(call: Call, loops: readonly string[]): void {
  const name = textOf(call.args[1]);
  const onHeaders = pathOf(present(call.args[0], 'argument'), loops)?.join('.') === 'request.headers';
  if (onHeaders && name !== undefined && name !== name.toLowerCase()) {
    throw new Error(`header names are lower case here: write \`request.headers["${name.toLowerCase()}"]\``);
  }
}

function int(value: number): Case<'constExpr'>['value'] {
  return { $typeName: 'cel.expr.Constant', constantKind: { case: 'int64Value', value: BigInt(value) } };
}
