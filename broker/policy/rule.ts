/** Rules of policies and guardrails: as they are written, and as they are compiled (compile-rules.ts). */
import type { Method } from './call-ask.ts';
import type { Condition } from './compiled-condition.ts';
import type { Limit, LimitSource } from './limit.ts';
import type { Pattern, Relation } from './pattern.ts';
import type { PlatformRules } from './platform-rules.ts';

export const EFFECTS = ['allow', 'require_approval', 'deny'] as const;
export type Effect = (typeof EFFECTS)[number];

/** One rule of a policy, or of the guardrails, as it is written. An absent list matches everything, an empty one nothing. */
export type RuleSource = {
  /** For a guardrail its name; a policy rule without one is called `rule 1`, `rule 2` … */
  name?: string;
  /** A guardrail may also `suspend`: deny, and suspend the agent. Guardrails never `allow`. */
  effect: Effect | 'suspend';
  platforms?: readonly string[];
  scopes?: readonly string[];
  methods?: readonly Method[];
  endpoints?: readonly string[];
  when?: string;
  /** It applies to calls that would bring a period over this. Rules that allow have none. */
  limit?: LimitSource;
  /** Of a guardrail that requires an approval: a standing approval may stand in for it. */
  remember?: boolean;
  /** Of a rule that requires an approval: names of channels in which a button may decide. */
  decide_in?: readonly string[];
};

/** A rule compiled by `compilePolicy` or `compileGuardrails` (compile-rules.ts), once per version. */
export type Rule = {
  name: string;
  /** Its place in the rules of its version. */
  place: number;
  /** A standing approval may stand in for it, where it requires an approval. */
  lasting: boolean;
  /** Names of channels in which a button may decide, where it requires an approval. */
  decideIn?: readonly string[];
  /** What it says, of one that has no name of its own. */
  says?: string;
  effect: Effect | 'suspend';
  platforms?: readonly Pattern[];
  scopes?: readonly Pattern[];
  methods?: readonly Method[];
  endpoints?: readonly Pattern[];
  when?: Condition;
  limit?: Limit;
  /** How many of a scope's operations `methods` and `endpoints` cover; for questions without a concrete call. */
  coverage(platform: PlatformRules, scope: string): Relation;
};

/** `readsFirstTimes`: a condition asks whether the agent does something for the first time. */
type RuleSet = { version: number; rules: readonly Rule[]; readsFirstTimes?: boolean; hasLimits?: boolean };
export type Policy = RuleSet & { id: string; name: string };
export type Guardrails = RuleSet;

/** A rule that matched, as it is recorded in the audit row and the receipt. `error`: its condition failed to evaluate. */
export type MatchedRule = { source: 'policy' | 'guardrail'; name: string; effect: Rule['effect']; error?: string };
