/** Which rules look back from a call, and which look back at it later. */
import type { Ask, Facts, Instant } from './facts.ts';
import { present } from './present.ts';
import type { After, MatchedRule, Rule } from './rule.ts';
import { isAbout, questionOf } from './rules.ts';

/** A rule that applies to the call if its agent made one of these before. */
export type Look = { source: MatchedRule['source']; place: number; after: After };

/**
 * Of a concrete call. `looks`: the rules that look back from it; `noted`: those that later calls look back at it by. A condition that fails counts
 * against the agent. Pure; never throws.
 *
 * @param now milliseconds since the epoch
 */
export function lookBack(facts: Facts, ask: Ask, now: Instant): { looks: Look[]; noted: After[] } {
  const question = questionOf(facts, ask, now);
  const asks = question.byParent ? [question, question.byParent] : [question];
  const matches = (rule: Rule) => asks.some((one) => isAbout(rule, one));
  const looking = [
    ...facts.guardrails.rules.map((rule) => ({ source: 'guardrail' as const, rule })),
    ...(facts.policy?.rules ?? []).map((rule) => ({ source: 'policy' as const, rule })),
  ].filter(({ rule }) => rule.after !== undefined);
  const looks = looking
    .filter(({ rule }) => matches(rule))
    .map(({ source, rule }) => ({ source, place: rule.place, after: present(rule.after, 'after') }));
  const noted = looking.flatMap(({ rule: { after } }) => (after && matches(after.made) ? [after] : []));
  return { looks, noted };
}
