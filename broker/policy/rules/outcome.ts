/** Computes the outcome of a call by the rules alone: of a policy and the guardrails together, without the grant. */
import type { Ask, Facts, Instant, MatchedRule } from '../facts.ts';
import { matchRules, type RuleFinding } from './rules.ts';
import { questionOf } from './selection.ts';

/** `cannot_tell`: the outcome depends on parts of the call that are not known (`recorded`). */
export type RuleOutcome = {
  effect: 'allow' | 'require_approval' | 'deny' | 'cannot_tell';
  /** The deciding rule; null: none matches, or the outcome is unknown. */
  rule: Pick<MatchedRule, 'source' | 'name'> | null;
};

const LEVELS = ['allow', 'require_approval', 'deny'] as const;
type Level = 0 | 1 | 2;

/** Pure; never throws. */
export function ruleOutcome(facts: Facts, ask: Ask, now: Instant): RuleOutcome {
  const question = questionOf(facts, ask, now);
  const guardrails = matchRules(facts.guardrails.rules, 'guardrail', question);
  const policy = matchRules(facts.policy?.rules ?? [], 'policy', question);
  const least = Math.max(leastOf(guardrails, 0), leastOf(policy, 2)) as Level;
  const most = Math.max(mostOf(guardrails, 0), mostOf(policy, 2)) as Level;
  if (least !== most) return { effect: 'cannot_tell', rule: null };
  // Guardrails take precedence.
  const source = leastOf(guardrails, 0) === least && guardrails.rule ? 'guardrail' : 'policy';
  const { rule } = source === 'guardrail' ? guardrails : policy;
  return { effect: LEVELS[least], rule: rule ? { source, name: rule.name } : null };
}

const leastOf = ({ effect }: RuleFinding, none: Level): Level => (effect === undefined ? none : level(effect));

const mostOf = (finding: RuleFinding, none: Level): Level =>
  finding.conditional && finding.worst !== undefined ? level(finding.worst) : leastOf(finding, none);

/** A suspension counts as a denial. */
function level(effect: NonNullable<RuleFinding['effect']>): Level {
  if (effect === 'allow' || effect === 'mask') return 0;
  return effect === 'require_approval' ? 1 : 2;
}
