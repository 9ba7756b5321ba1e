/** Rules of policies and guardrails: as they are written, and as they are compiled (compile-rules.ts). */
import type { Method } from './call-ask.ts';
import type { Condition } from './compiled-condition.ts';
import type { Limit, LimitSource } from './limit.ts';
import type { MaskSource } from './mask.ts';
import type { Pattern, Relation } from './pattern.ts';
import type { PlatformRules } from './platform-rules.ts';

/** `mask` lets nothing pass and stops nothing: it is about what comes back. */
export const EFFECTS = ['allow', 'require_approval', 'deny', 'mask'] as const;
export type Effect = (typeof EFFECTS)[number];

/** Members of a rule that say which calls it is about. */
type SelectionSource = {
  platforms?: readonly string[];
  scopes?: readonly string[];
  methods?: readonly Method[];
  endpoints?: readonly string[];
  when?: string;
};

/** Which calls a rule looks back at, and for how long after one (`8h`). */
export type AfterSource = SelectionSource & { within: string };

/** One rule of a policy, or of the guardrails, as it is written. An absent list matches everything, an empty one nothing. */
export type RuleSource = SelectionSource & {
  /** For a guardrail its name; a policy rule without one is called `rule 1`, `rule 2` … */
  name?: string;
  /** A guardrail may also `suspend`: deny, and suspend the agent. Guardrails never `allow`. */
  effect: Effect | 'suspend';
  /** What is masked in the answers of the calls. Rules that mask have one, others none. */
  mask?: MaskSource;
  /** It applies to calls that would bring a period over this. Rules that allow or mask have none. */
  limit?: LimitSource;
  /** It applies where the agent made one of these calls before. Rules that allow or mask have none. */
  after?: AfterSource;
  /** Of a guardrail that requires an approval: a standing approval may stand in for it. */
  remember?: boolean;
  /** Of a rule that requires an approval: names of channels in which a button may decide. */
  decide_in?: readonly string[];
};

/** Compiled. `made`: selects the calls. `text`: says which, the same for all rules that look back at the same. */
export type After = { made: Rule; text: string; withinMs: number };

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
  mask?: MaskSource;
  limit?: Limit;
  after?: After;
  /** How many of a scope's operations `methods` and `endpoints` cover; for questions without a concrete call. */
  coverage(platform: PlatformRules, scope: string): Relation;
};

/** `readsFirstTimes`: a condition asks whether the agent does something for the first time. `readsPast`: a rule has a limit, or looks back at other calls. */
type RuleSet = {
  version: number;
  rules: readonly Rule[];
  readsFirstTimes?: boolean;
  readsPast?: boolean;
};
export type Policy = RuleSet & { id: string; name: string };
export type Guardrails = RuleSet;

/**
 * A rule that matched, as it is recorded in the audit row and the receipt. `error`: its condition failed to evaluate. `after`: the audit id of
 * the earlier call because of which it applies.
 */
export type MatchedRule = {
  source: 'policy' | 'guardrail';
  name: string;
  effect: Rule['effect'];
  error?: string;
  after?: string;
};
