/** Determines which rules look back from a call, and which rules look back at it later. */
import type { Ask, Facts, Instant } from './facts.ts';
import type { After, MatchedRule, Rule } from './rules/rule.ts';
import { isAbout, questionOf, selects } from './rules/selection.ts';

/** A rule that applies to the call if its agent made a call of `after` before. */
export type Look = { source: MatchedRule['source']; place: number; after: After };

/**
 * Returns the uuid of the parent, or of an agent without one. An agent and its children are one family: what one of them reads, it may pass on to the others.
 */
export const familyIn = ({ agent }: Facts): string => agent.parent?.id ?? agent.id;

/** Returns the rules that look back at other calls. */
export function lookBackRules({ guardrails, policy }: Facts): (Look & { rule: Rule })[] {
  const of = (rules: readonly Rule[], source: Look['source']) =>
    rules.flatMap((rule) => (rule.after ? [{ source, place: rule.place, after: rule.after, rule }] : []));
  return [...of(guardrails.rules, 'guardrail'), ...of(policy?.rules ?? [], 'policy')];
}

/** Returns the selections by which rules look back at a past call: anything unknown about the call counts as selected. Pure; never throws. */
export function lookedBackAt(facts: Facts, ask: Ask, now: Instant): After[] {
  const question = questionOf(facts, ask, now);
  const asks = [question, ...question.others];
  return lookBackRules(facts).flatMap(({ after }) =>
    asks.some((one) => selects(after.made, one) !== 'no') ? [after] : [],
  );
}

/**
 * Evaluates a concrete call. `looks`: the rules that look back from it; `noted`: the selections by which later calls look back at it. A condition that fails
 * decides against the agent. Pure; never throws.
 *
 * @param now milliseconds since the epoch
 */
export function lookBack(facts: Facts, ask: Ask, now: Instant): { looks: Look[]; noted: After[] } {
  const question = questionOf(facts, ask, now);
  const asks = [question, ...question.others];
  const matches = (rule: Rule) => asks.some((one) => isAbout(rule, one));
  const looking = lookBackRules(facts);
  return {
    looks: looking.filter(({ rule }) => matches(rule)),
    noted: looking.flatMap(({ after }) => (matches(after.made) ? [after] : [])),
  };
}
