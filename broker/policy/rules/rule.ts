/** Rules of policies and guardrails: as written, and as compiled (compile.ts). */
import type { Method } from '../call-ask.ts';
import type { Condition } from '../conditions/compiled.ts';
import type { Limit, LimitSource } from '../limit.ts';
import type { MaskSource } from '../masks/mask.ts';
import type { Pattern, Relation } from '../pattern.ts';
import type { PlatformRules } from '../platform-rules.ts';

/** `mask` neither allows nor stops a call: it applies to the answer. */
export const EFFECTS = ['allow', 'require_approval', 'deny', 'mask'] as const;
export type Effect = (typeof EFFECTS)[number];

/** Members of a rule that select calls. */
type SelectionSource = {
  platforms?: readonly string[];
  scopes?: readonly string[];
  methods?: readonly Method[];
  endpoints?: readonly string[];
  when?: string;
};

/** The earlier calls at which a rule looks back, and for how long after such a call it applies (`8h`). */
export type AfterSource = SelectionSource & { within: string };

/** One rule of a policy, or of the guardrails, as it is written. An absent list matches everything, an empty one nothing. */
export type RuleSource = SelectionSource & {
  /** Required for a guardrail; a policy rule without a name is called `rule 1`, `rule 2` … */
  name?: string;
  /** A guardrail may also `suspend`: deny, and suspend the agent. Guardrails never `allow`. */
  effect: Effect | 'suspend';
  /** What is masked in the answers of the calls. Required for rules that mask; other rules have none. */
  mask?: MaskSource;
  /** The rule applies to calls that would exceed this limit in a period. Rules that allow or mask have none. */
  limit?: LimitSource;
  /** The rule applies when the agent made one of these calls before. Rules that allow or mask have none. */
  after?: AfterSource;
  /** For a guardrail that requires an approval: whether a standing approval may replace it. */
  remember?: boolean;
  /** For a rule that requires an approval: names of channels in which a button may decide. */
  decide_in?: readonly string[];
  /** For a rule that requires an approval: how many different people have to approve. Default: 1. */
  approvers?: number;
};

/** Compiled. `made`: selects the earlier calls. `text`: identifies the selection, equal for all rules that look back at the same calls. */
export type After = { made: Rule; text: string; withinMs: number };

/** A rule compiled by `compilePolicy` or `compileGuardrails` (compile.ts), once per version. */
export type Rule = {
  name: string;
  /** Its index in the rules of its version. */
  place: number;
  /** Whether a standing approval may replace the approval that it requires. */
  lasting: boolean;
  /** For a rule that requires an approval: names of channels in which a button may decide. */
  decideIn?: readonly string[];
  /** For a rule that requires an approval: how many different people have to approve, when it is more than one. */
  approvers?: number;
  /** Its description in words; only for a rule without a name of its own. */
  says?: string;
  effect: Effect | 'suspend';
  platforms?: readonly Pattern[];
  scopes?: readonly Pattern[];
  methods?: readonly Method[];
  endpoints?: readonly Pattern[];
  when?: Condition;
  mask?: MaskSource;
  limit?: Limit;
  after?: After;
  /** How many of a scope's operations `methods` and `endpoints` cover; for questions without a concrete call. */
  coverage(platform: PlatformRules, scope: string): Relation;
};

/** `readsFirstTimes`: a condition reads whether the agent does something for the first time. `readsPast`: a rule has a limit, or looks back at other calls. */
type RuleSet = {
  version: number;
  rules: readonly Rule[];
  readsFirstTimes?: boolean;
  readsPast?: boolean;
};
export type Policy = RuleSet & { id: string; name: string };
export type Guardrails = RuleSet;

/**
 * A matching rule, as it is recorded in the audit row and the receipt. `error`: its condition failed to evaluate. `after`: the audit id of the earlier call
 * because of which the rule applies.
 */
export type MatchedRule = {
  source: 'policy' | 'guardrail';
  name: string;
  effect: Rule['effect'];
  error?: string;
  after?: string;
};
