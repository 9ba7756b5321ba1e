/** Finds literals in a condition: values that do not depend on the call. */
import { CelScalar } from '@bufbuild/cel';
import { foldLabel } from '../labels.ts';
import { type Case, type Expr, pathOf } from './variables.ts';

const COMPARISONS = new Set(['_==_', '_!=_', '@in']);

/** Whether a function call compares a boolean or number literal with something that is not a literal. */
export function comparesTyped({ function: name, args: [left, right] }: Case<'callExpr'>['value']): boolean {
  if (!COMPARISONS.has(name) || left === undefined || right === undefined) return false;
  return (isTyped(left) && !isLiteral(right)) || (isTyped(right) && !isLiteral(left));
}

const TYPED_LITERALS: ReadonlySet<string | undefined> = new Set([
  'boolValue',
  'int64Value',
  'uint64Value',
  'doubleValue',
]);

/** Whether an expression is a boolean or number literal, or contains one. */
function isTyped(expr: Expr): boolean {
  const { exprKind } = expr;
  return exprKind.case === 'constExpr'
    ? TYPED_LITERALS.has(exprKind.value.constantKind.case)
    : partsOf(expr)?.some(isTyped) === true;
}

const isLiteral = (expr: Expr): boolean =>
  expr.exprKind.case === 'constExpr' || partsOf(expr)?.every(isLiteral) === true;

/** Returns the parts of a list, a map or a negative number; undefined for anything else. */
function partsOf({ exprKind }: Expr): Expr[] | undefined {
  if (exprKind.case === 'listExpr') return exprKind.value.elements;
  if (exprKind.case === 'structExpr') return exprKind.value.entries.flatMap(({ value }) => value ?? []);
  return exprKind.case === 'callExpr' && exprKind.value.function === '-_' ? exprKind.value.args : undefined;
}

const FOLDED: ReadonlySet<string | undefined> = new Set(['agent.labels', 'request.headers']);
const FOLDING = new Set(['_==_', '_!=_', '@in', 'startsWith', 'endsWith', 'contains']);

/** Whether an expression is a list that is stored in lower case: labels of agents, or names of headers. */
export const isFolded = (expr: Expr | undefined, loops: readonly string[]): boolean =>
  expr !== undefined && FOLDED.has(pathOf(expr, loops)?.join('.'));

/**
 * Folds the literals that are compared with a label or the name of a header, since both ignore letter case (the tree is changed in place). Regular
 * expressions are left as they are: they state themselves which case they match.
 *
 * @param names variables of loops over labels or headers
 */
export function foldCompared(expr: Expr, loops: readonly string[], names: ReadonlySet<string>): void {
  const { exprKind } = expr;
  if (exprKind.case === 'selectExpr' && pathOf(exprKind.value.operand as Expr, loops)?.join('.') === 'request.headers')
    exprKind.value.field = foldLabel(exprKind.value.field);
  if (exprKind.case !== 'callExpr' || !FOLDING.has(exprKind.value.function)) return;
  const { function: name, target, args } = exprKind.value;
  const all = target === undefined ? args : [target, ...args];
  const isName = (arg: Expr) => arg.exprKind.case === 'identExpr' && names.has(arg.exprKind.value.name);
  if (all.some(isName) || (name === '@in' && isFolded(args[1], loops))) foldTexts(all);
}

function foldTexts(exprs: readonly Expr[]): void {
  for (const expr of exprs) {
    const literal = expr.exprKind.case === 'constExpr' ? expr.exprKind.value.constantKind : undefined;
    if (literal?.case === 'stringValue') literal.value = foldLabel(literal.value);
    else if (expr.exprKind.case === 'listExpr') foldTexts(expr.exprKind.value.elements);
  }
}

export type ResultType = 'bool' | 'number';
/** The literals of a type, and the results of functions that have it. */
export const TYPES: Record<ResultType, { literals: ReadonlySet<string | undefined>; results: ReadonlySet<unknown> }> = {
  bool: { literals: new Set(['boolValue']), results: new Set([CelScalar.BOOL]) },
  number: {
    literals: new Set(['int64Value', 'uint64Value', 'doubleValue']),
    results: new Set([CelScalar.INT, CelScalar.UINT, CelScalar.DOUBLE]),
  },
};
