/** A condition that was compiled (condition.ts), and what it is evaluated on. */
import type { CelValue } from '@bufbuild/cel';
import type { Meter } from './condition-values.ts';

/** An expression that was compiled, whose result is a `Value`. */
export type Expression<Value> = {
  source: string;
  /** Members that may be missing and are read without `has()`, such as `request.body.amount`; `plan` warns of them. */
  readsWithoutHas: string[];
  /** Whether it has to be known what the agent did before. */
  readsFirstTimes: boolean;
  /** Whether it may read what no audit row holds of a call: query, headers, body and others. */
  readsUnrecorded: boolean;
  /** `others`: what else servers come to that read the call differently. */
  evaluate(input: ConditionInput): Evaluated<Value> & { others?: readonly Evaluated<Value>[] };
};

export type Condition = Expression<boolean>;
/** How much a call is, from 0 on. */
export type Amount = Expression<number>;

export type Evaluated<Value = boolean> = { ok: true; value: Value } | { ok: false; error: string };

/** The variables of every condition that is evaluated on one call; values are converted when they are first read. */
export type ConditionInput = { readonly variables: Record<string, CelValue>; readonly meter: Meter };
