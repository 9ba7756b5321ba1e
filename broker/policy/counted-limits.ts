/** Computes towards which limits of rules a call counts, and how much of each it takes. */

import { present } from '../runtime/present.ts';
import type { Amount } from './conditions/compiled.ts';
import type { Ask, Facts, Instant } from './facts.ts';
import type { Counted } from './limit.ts';
import type { Rule } from './rules/rule.ts';
import { isAbout, type Question, questionOf } from './rules/selection.ts';

/** Evaluates a concrete call. Pure; never throws. `now`: milliseconds since the epoch. */
export function countedBy(facts: Facts, ask: Ask, now: Instant): Counted[] {
  const question = questionOf(facts, ask, now);
  const asks = [question, ...question.others];
  const of = (rules: readonly Rule[], source: Counted['source']) =>
    rules.flatMap((rule) => {
      const by = rule.limit && asks.find((one) => isAbout(rule, one));
      return by ? [counted(rule, source, by)] : [];
    });
  return [...of(facts.guardrails.rules, 'guardrail'), ...of(facts.policy?.rules ?? [], 'policy')];
}

function counted({ name: rule, limit: of }: Rule, source: Counted['source'], question: Question): Counted {
  const limit = present(of, 'limit');
  const taken: ReturnType<Amount['evaluate']> = limit.of?.evaluate(question.input()) ?? { ok: true, value: 1 };
  // Of all readings of a call, the one that gives the agent least: an error, or else the largest amount.
  const read = [taken, ...(taken.others ?? [])].reduce((a, b) => (!a.ok || (b.ok && b.value <= a.value) ? a : b));
  return read.ok
    ? { source, rule, limit, amount: read.value }
    : { source, rule, limit, amount: undefined, error: read.error };
}
