/** What a condition writes out: values that no call changes. */
import { type Case, type Expr, pathOf } from './condition-variables.ts';
import { foldLabel } from './labels.ts';

const COMPARISONS = new Set(['_==_', '_!=_', '@in']);

/** Whether a call of a function compares a truth value or a number that is written out with something that is not. */
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

/** Whether it is a truth value or a number, or has one in it. */
function isTyped(expr: Expr): boolean {
  const { exprKind } = expr;
  return exprKind.case === 'constExpr'
    ? TYPED_LITERALS.has(exprKind.value.constantKind.case)
    : partsOf(expr)?.some(isTyped) === true;
}

const isLiteral = (expr: Expr): boolean =>
  expr.exprKind.case === 'constExpr' || partsOf(expr)?.every(isLiteral) === true;

/** Of a list, a map or a negative number; undefined: it is something else. */
function partsOf({ exprKind }: Expr): Expr[] | undefined {
  if (exprKind.case === 'listExpr') return exprKind.value.elements;
  if (exprKind.case === 'structExpr') return exprKind.value.entries.flatMap(({ value }) => value ?? []);
  return exprKind.case === 'callExpr' && exprKind.value.function === '-_' ? exprKind.value.args : undefined;
}

/** Whether an expression is `agent.labels`. */
export const isLabels = (expr: Expr | undefined, loops: readonly string[]): boolean =>
  expr !== undefined && pathOf(expr, loops)?.join('.') === 'agent.labels';

/**
 * Whether a call of a function compares a label with its other arguments. A regular expression says itself which case it means.
 *
 * @param labels variables of loops over `agent.labels`
 */
export const comparesLabel = (
  call: Case<'callExpr'>['value'],
  args: readonly Expr[],
  loops: readonly string[],
  labels: ReadonlySet<string>,
): boolean =>
  call.function !== 'matches' &&
  (args.some(({ exprKind }) => exprKind.case === 'identExpr' && labels.has(exprKind.value.name)) ||
    (call.function === '@in' && isLabels(call.args[1], loops)));

/** Folds the texts that are compared with labels, of which letter case counts for nothing (the tree is changed in place). */
export function foldTexts(exprs: readonly Expr[]): void {
  for (const expr of exprs) {
    const literal = expr.exprKind.case === 'constExpr' ? expr.exprKind.value.constantKind : undefined;
    if (literal?.case === 'stringValue') literal.value = foldLabel(literal.value);
    else if (expr.exprKind.case === 'listExpr') foldTexts(expr.exprKind.value.elements);
  }
}
