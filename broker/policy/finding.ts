/** The input and the result of the checks of a decision. */
import type { CheckName, DenyReason, Facts, Grant, HoldReason, Instant, MatchedRule, Verdict } from './facts.ts';
import type { ReportedLimit } from './limit.ts';
import type { Rule } from './rules/rule.ts';
import type { Question } from './rules/selection.ts';
import type { Hold } from './standing-terms.ts';

/** The input of the checks. */
export type CheckInput = {
  facts: Facts;
  now: Instant;
  question: Question;
  /** See `effectiveGrant`. */
  grant: Grant | undefined;
};

type Deny = Extract<Verdict, { kind: 'deny' }>;
type More = Pick<
  Deny,
  'halt' | 'retryAfterSeconds' | 'refusedPlatformId' | 'violating' | 'suspend' | 'limit' | 'notGrantable'
>;

/** The result of one check. `masking`: the rules that mask the platform's answer. */
export type Finding = {
  matched?: readonly MatchedRule[];
  masking?: readonly Rule[];
  conditional?: boolean;
  unread?: true;
} & (
  | { kind: 'pass' }
  | { kind: 'hold'; reason: HoldReason; detail: string; holds: readonly Hold[]; limit?: ReportedLimit }
  | ({ kind: 'deny'; reason: DenyReason; detail: string } & More)
);

export type Check<Name extends CheckName> = readonly [name: Name, check: (matter: CheckInput) => Finding];

export const PASS: Extract<Finding, { kind: 'pass' }> = Object.freeze({ kind: 'pass' });

/** Returns a refusal. */
export function deny(reason: DenyReason, detail: string, more: More & Pick<Deny, 'unread'> = {}): Finding {
  return { kind: 'deny', reason, detail, ...more };
}
