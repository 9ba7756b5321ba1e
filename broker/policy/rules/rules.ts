/**
 * Matches policies and guardrails, on every decision. The most severe matching effect wins (suspend and deny, then require_approval, then allow), so the
 * order of rules never matters.
 */

import type { Earlier } from '../earlier.ts';
import { type Ask, type MatchedRule, type Rule, UnreadBody } from '../facts.ts';
import { exceedsLimit } from '../limit.ts';
import type { Relation } from '../pattern.ts';
import { type Match, namesAsk, type Question, selects } from './selection.ts';

/** The result of a list of rules for an ask. */
export type RuleFinding = {
  /** Undefined: no rule matches. */
  effect: Rule['effect'] | undefined;
  /** The first rule with that effect. */
  rule?: Rule;
  /** The matching rules, in the order in which they are written. */
  matched: MatchedRule[];
  /** The matching rules that require an approval. */
  holding: Rule[];
  /** The matching rules that mask the answer; they do not influence `effect`. */
  masking: readonly Rule[];
  /** Whether rules that depend on unknown parts of the call may still change the effect. */
  conditional: boolean;
  /** When `conditional`: the most severe effect that is possible. */
  worst?: Rule['effect'];
  /** Allow rules that did not apply because their condition failed: `rule 1: …`. */
  failures: string[];
  /** Whether all rules with that effect match, or without one the rules that allow fail, only because the body was not read. */
  unread: boolean;
};

const SEVERITY: Record<Rule['effect'], number> = { mask: 0, allow: 1, require_approval: 2, deny: 3, suspend: 4 };
const NO_RULES: readonly Rule[] = Object.freeze([]);

/**
 * Matches rules against an ask: a concrete call, or a standing question about the scope as a whole. Rules may name an agent (`agent.name`), and a child has a
 * name that its parent chose: so the rules are matched for both, and for each scope that a call needs, and the strictest result counts. What is held or masked
 * for any of them is held or masked.
 */
export function matchRules(rules: readonly Rule[], source: MatchedRule['source'], question: Question): RuleFinding {
  const own = matchOne(rules, source, question);
  if (question.ask.call === undefined) return own;
  return question.others.reduce((found, other) => stricter(found, matchOne(rules, source, other), source), own);
}

/** Returns the stricter of two results, with the rules of the other that have the same effect, or mask. */
function stricter(one: RuleFinding, other: RuleFinding, source: MatchedRule['source']): RuleFinding {
  if (severityOf(other, source) > severityOf(one, source)) return stricter(other, one, source);
  const holding = one.effect === other.effect ? other.holding.filter((rule) => !one.holding.includes(rule)) : [];
  const masking = other.masking.filter((rule) => !one.masking.includes(rule));
  const mayBe = SEVERITY[other.worst ?? 'mask'] > Math.max(severityOf(one, source), SEVERITY[one.worst ?? 'mask']);
  if (holding.length === 0 && masking.length === 0 && !mayBe) return one;
  const names = [...holding, ...masking].map(({ name }) => name);
  return {
    ...one,
    ...(mayBe && other.worst && { conditional: true, worst: other.worst }),
    holding: [...one.holding, ...holding],
    masking: [...one.masking, ...masking],
    matched: [...one.matched, ...other.matched.filter(({ name }) => names.includes(name))],
  };
}

/** A policy without a matching rule denies. */
function severityOf({ effect }: RuleFinding, source: MatchedRule['source']): number {
  if (effect !== undefined) return SEVERITY[effect];
  return source === 'policy' ? SEVERITY.deny : 0;
}

function matchOne(rules: readonly Rule[], source: MatchedRule['source'], question: Question): RuleFinding {
  const finding: RuleFinding = {
    effect: undefined,
    matched: [],
    holding: [],
    masking: NO_RULES,
    conditional: false,
    failures: [],
    unread: false,
  };
  const depending: Rule[] = [];
  for (const rule of rules) {
    const match = question.ask.call === undefined ? matchStanding(rule, question) : matchCall(rule, source, question);
    if (match === 'no') continue;
    if (rule.effect === 'mask') takeMask(finding, rule, source, match);
    else if (match === 'depends') depending.push(rule);
    else if (match === 'yes') take(finding, rule, matchedAs(rule, source, question));
    else if (rule.effect !== 'allow')
      take(
        finding,
        rule,
        { ...matchedAs(rule, source, question), error: match.error },
        wantsUnread(rule, question.ask),
      );
    else {
      finding.failures.push(`the condition of ${rule.name} failed: ${match.error}`);
      if (finding.effect === undefined && wantsUnread(rule, question.ask)) finding.unread = true;
    }
  }
  if (depending.length > 0) addDepending(finding, depending, source);
  return finding;
}

/** Adds a mask, which has no influence on the effect. A mask that depends on unknown parts of the call is not added. */
function takeMask(finding: RuleFinding, rule: Rule, source: MatchedRule['source'], match: Exclude<Match, 'no'>): void {
  if (match === 'depends') return;
  finding.masking = [...finding.masking, rule];
  const error = typeof match === 'object' ? match : {};
  finding.matched.push({ source, name: rule.name, effect: rule.effect, ...error });
}

/**
 * Rules that depend on the call do not decide a standing question: when other rules certainly match, they only make the result conditional. Otherwise the
 * mildest of them is the best possible result for a call, and is returned; when all of them deny, no call is allowed, and none of them is listed as matching.
 */
function addDepending(finding: RuleFinding, depending: readonly Rule[], source: MatchedRule['source']): void {
  const settled = finding.effect;
  if (settled === undefined && source === 'policy') {
    const mildest = depending.reduce((a, b) => (SEVERITY[b.effect] < SEVERITY[a.effect] ? b : a));
    // Possibly none of them matches.
    finding.worst = 'deny';
    if (SEVERITY[mildest.effect] >= SEVERITY.deny) return;
    take(finding, mildest, { source, name: mildest.name, effect: mildest.effect });
    finding.conditional = true;
    return;
  }
  const severity = settled === undefined ? 0 : SEVERITY[settled];
  const worse = depending.filter((rule) => SEVERITY[rule.effect] > severity);
  finding.conditional = worse.length > 0;
  for (const { effect } of worse)
    if (finding.worst === undefined || SEVERITY[effect] > SEVERITY[finding.worst]) finding.worst = effect;
}

/** Whether the failed condition of a rule, or the failed amount of its limit, mentions an unread body, or the refs in it. */
function wantsUnread({ when, limit }: Rule, { call }: Ask): boolean {
  const read = `${when?.source ?? ''} ${limit?.of?.source ?? ''}`;
  return call?.body instanceof UnreadBody && /\b(?:body|refs)\b/.test(read);
}

function matchedAs(rule: Rule, source: MatchedRule['source'], { ask }: Question): MatchedRule {
  const earlier = rule.after && earlierOf(rule, source, ask);
  return {
    source,
    name: rule.name,
    effect: rule.effect,
    ...(earlier?.auditId !== undefined && { after: earlier.auditId }),
  };
}

function take(finding: RuleFinding, rule: Rule, matched: MatchedRule, unread = false): void {
  if (rule.effect === 'require_approval') finding.holding.push(rule);
  finding.matched.push(matched);
  if (finding.effect === rule.effect) finding.unread &&= unread;
  if (finding.effect !== undefined && SEVERITY[rule.effect] <= SEVERITY[finding.effect]) return;
  finding.unread = unread;
  finding.effect = rule.effect;
  finding.rule = rule;
}

function matchStanding(rule: Rule, { platform, ask }: Question): 'yes' | 'no' | 'depends' {
  if (rule.effect === 'mask') return 'no';
  const coverage: Relation = platform === undefined ? 'some' : rule.coverage(platform, ask.scope);
  if (coverage === 'none' || !namesAsk(rule, ask)) return 'no';
  const depends = rule.when !== undefined || rule.limit !== undefined || rule.after !== undefined;
  return coverage === 'some' || depends ? 'depends' : 'yes';
}

function matchCall(rule: Rule, source: MatchedRule['source'], question: Question): Match {
  const { call } = question.ask;
  const earlier = rule.after && earlierOf(rule, source, question.ask);
  // Whether the rule selects the call was checked when `earlier` was computed.
  if (rule.after !== undefined && !earlier && call?.earlier !== undefined && call.recorded === undefined) return 'no';
  const selected = selects(rule, question);
  if (rule.after !== undefined && !earlier && (selected === 'yes' || typeof selected === 'object')) {
    const isUnknown = call?.untold?.some((one) => one.source === source && one.place === rule.place);
    return call?.earlier === undefined || isUnknown ? 'depends' : 'no';
  }
  return selected === 'yes' && rule.limit !== undefined ? beyondLimit(rule, source, question) : selected;
}

/** Returns the earlier call because of which a rule that looks back applies. */
export const earlierOf = ({ place }: Rule, source: MatchedRule['source'], { call }: Ask): Earlier | undefined =>
  call?.earlier?.find((one) => one.source === source && one.place === place);

/** Whether the call would exceed the limit of a rule that counts it. */
function beyondLimit({ name }: Rule, source: MatchedRule['source'], { ask: { call } }: Question): Match {
  if (call?.charges === undefined || call.recorded !== undefined) return 'depends';
  const charge = call.charges.find((one) => one.source === source && one.rule === name);
  if (charge === undefined) return 'no';
  if (charge.error !== undefined) return { error: charge.error };
  return exceedsLimit(charge) ? 'yes' : 'no';
}
