/** What a condition writes out: values that no call changes. */
import type { Case, Expr } from './condition-variables.ts';

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
