/** A condition that was compiled (condition.ts), and what it is evaluated on. */
import type { CelValue } from '@bufbuild/cel';
import type { Meter } from './condition-values.ts';

export type Condition = {
  source: string;
  /** Members that may be missing and are read without `has()`, such as `request.body.amount`; `plan` warns of them. */
  readsWithoutHas: string[];
  /** Whether it has to be known what the agent did before. */
  readsFirstTimes: boolean;
  /** Whether it may read what no audit row holds of a call: query, headers, body and others. */
  readsUnrecorded: boolean;
  /** `loosely`: the result as a lenient server reads the parameters, where it may be another one. */
  evaluate(input: ConditionInput): Evaluated & { loosely?: Evaluated };
};

export type Evaluated = { ok: true; value: boolean } | { ok: false; error: string };

/** The variables of every condition that is evaluated on one call; values are converted when they are first read. */
export type ConditionInput = { readonly variables: Record<string, CelValue>; readonly meter: Meter };
