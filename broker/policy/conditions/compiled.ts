/** The form of a compiled condition (condition.ts), and the input on which it is evaluated. */
import type { CelValue } from '@bufbuild/cel';
import type { Meter } from './values.ts';

/** A compiled expression, whose result is a `Value`. */
export type Expression<Value> = {
  source: string;
  /** Members that may be missing and are read without `has()`, such as `request.body.amount`; `plan` warns about them. */
  readsWithoutHas: string[];
  /** Whether it reads `first_time` facts about the agent's earlier calls. */
  readsFirstTimes: boolean;
  /** Whether it may read parts of a call that no audit row records: query, headers, body and others. */
  readsUnrecorded: boolean;
  /** `others`: different results for servers that parse the call differently. */
  evaluate(input: ConditionInput): Evaluated<Value> & { others?: readonly Evaluated<Value>[] };
};

export type Condition = Expression<boolean>;
/** The amount of a call that counts towards a limit, from 0 on. */
export type Amount = Expression<number>;

export type Evaluated<Value = boolean> = { ok: true; value: Value } | { ok: false; error: string };

/** The input of all conditions that are evaluated on one call; values are converted when they are first read. */
export type ConditionInput = { readonly variables: Record<string, CelValue>; readonly meter: Meter };
