/** Warnings about conditions that compile and are probably wrong: literals that no call has, and conversions of literals that always fail. */
import { celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import { METHODS } from '../call-ask.ts';
import { conditionFunctions } from './functions.ts';
import { newMeter } from './values.ts';
import { type Case, type Expr, pathOf, textOf } from './variables.ts';

/** For each conversion, how to write its literal. */
const CONVERSIONS: Readonly<Record<string, string>> = {
  timestamp: 'write a moment such as timestamp("2027-01-31T18:00:00Z")',
  duration: 'write hours, minutes or seconds, such as duration("36h") or duration("90m")',
  int: 'write a whole number',
  uint: 'write a whole number',
  double: 'write a number',
  bool: 'write true or false',
};
const COMPARISONS: ReadonlySet<string> = new Set(['_==_', '_!=_', '@in']);

/** Returns warnings for the author of a condition that compiles. `then`: the consequence of a failing condition, such as `the rule applies`. */
export function conditionDoubts(source: string, then: string): string[] {
  const env = celEnv({
    funcs: conditionFunctions({ regexes: new Map(), zones: new Map(), texts: new Set() }, newMeter),
  });
  const fails = (expr: Expr): boolean => isCelError(plan(env, expr)({}));
  const doubts: string[] = [];
  for (const expr of expressionsIn(parse(source).expr)) {
    if (expr.exprKind.case !== 'callExpr') continue;
    const call = expr.exprKind.value;
    const [instead, literal] = [CONVERSIONS[call.function], textOf(call.args[0])];
    if (instead !== undefined && call.target === undefined && literal !== undefined && fails(expr))
      doubts.push(
        `${call.function}(${JSON.stringify(literal)}) always fails, which counts against the agent: ${then}. Instead ${instead}.`,
      );
    for (const method of methodsComparedIn(call))
      if (!METHODS.some((one) => one === method))
        doubts.push(
          `compares request.method with ${JSON.stringify(method)}, which is the method of no call. They are ${METHODS.join(', ')}.`,
        );
  }
  return doubts;
}

/** Returns the texts that a function call compares with `request.method`. */
function methodsComparedIn({ function: name, args }: Case<'callExpr'>['value']): string[] {
  if (!COMPARISONS.has(name) || !args.some((arg) => pathOf(arg, [])?.join('.') === 'request.method')) return [];
  return args
    .flatMap((arg) => [arg, ...(arg.exprKind.case === 'listExpr' ? arg.exprKind.value.elements : [])])
    .flatMap((arg) => textOf(arg) ?? []);
}

/** Yields an expression and all its sub-expressions. */
function* expressionsIn(expr: Expr | undefined): Generator<Expr, void> {
  if (expr === undefined) return;
  yield expr;
  for (const part of directlyIn(expr)) yield* expressionsIn(part);
}

function directlyIn({ exprKind }: Expr): readonly (Expr | undefined)[] {
  switch (exprKind.case) {
    case 'selectExpr':
      return [exprKind.value.operand];
    case 'callExpr':
      return [exprKind.value.target, ...exprKind.value.args];
    case 'listExpr':
      return exprKind.value.elements;
    case 'structExpr':
      return exprKind.value.entries.flatMap(({ keyKind, value }) => [
        keyKind.case === 'mapKey' ? keyKind.value : undefined,
        value,
      ]);
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result } = exprKind.value;
      return [iterRange, accuInit, loopCondition, loopStep, result];
    }
    default:
      return [];
  }
}
