/**
 * Policies and guardrails are matched on every decision. The most severe matching effect wins (suspend and deny, then
 * require_approval, then allow), so the order of rules never matters.
 */

import type { Earlier } from './earlier.ts';
import { type Ask, type MatchedRule, type Rule, UnreadBody } from './facts.ts';
import { isOver } from './limit.ts';
import type { Relation } from './pattern.ts';
import { type Match, namesAsk, type Question, selects } from './rule-selection.ts';

/** What a list of rules says about an ask. */
export type RuleFinding = {
  /** Undefined: no rule matches. */
  effect: Rule['effect'] | undefined;
  /** The first rule with that effect. */
  rule?: Rule;
  /** The rules that matched, in the order in which they are written. */
  matched: MatchedRule[];
  /** Those of them that require an approval. */
  holding: Rule[];
  /** Those of them that mask what comes back; they are no effect. */
  masking: readonly Rule[];
  /** Without a concrete call: a rule that depends on the call may still change the effect. */
  conditional: boolean;
  /** Then the most severe effect that it may become. */
  worst?: Rule['effect'];
  /** Allow rules that did not apply because their condition failed: `rule 1: …`. */
  failures: string[];
  /** All rules with that effect match, or without one the rules that allow fail, only because the body was not read. */
  unread: boolean;
};

const SEVERITY: Record<Rule['effect'], number> = { mask: 0, allow: 1, require_approval: 2, deny: 3, suspend: 4 };
const NO_RULES: readonly Rule[] = Object.freeze([]);

/**
 * Matches rules against an ask: a concrete call, or a standing question about the scope as a whole. Rules may name an agent
 * (`agent.name`), and a child bears whatever name its parent gave it: the rules have to let both of them, and what is said to
 * the one that they let less is the answer. What is masked for either is masked.
 */
export function matchRules(rules: readonly Rule[], source: MatchedRule['source'], question: Question): RuleFinding {
  const own = matchOne(rules, source, question);
  if (question.byParent === undefined || question.ask.call === undefined || !rules.some((rule) => rule.when))
    return own;
  const parents = matchOne(rules, source, question.byParent);
  const [stricter, other] = severityOf(parents, source) > severityOf(own, source) ? [parents, own] : [own, parents];
  const more = other.masking.filter((rule) => !stricter.masking.includes(rule));
  if (more.length === 0) return stricter;
  const matched = more.map(({ name, effect }) => ({ source, name, effect }));
  return { ...stricter, masking: [...stricter.masking, ...more], matched: [...stricter.matched, ...matched] };
}

/** What no rule of a policy lets pass is denied. */
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

/** A mask is no effect: nothing passes or stops because of it. One that depends on what is not known is not said to match. */
function takeMask(finding: RuleFinding, rule: Rule, source: MatchedRule['source'], match: Exclude<Match, 'no'>): void {
  if (match === 'depends') return;
  finding.masking = [...finding.masking, rule];
  const error = typeof match === 'object' ? match : {};
  finding.matched.push({ source, name: rule.name, effect: rule.effect, ...error });
}

/**
 * Rules that depend on the call do not decide a standing question: beside rules that surely match they only make the
 * answer conditional. Alone, the mildest of them is the best that a call can hope for, and the answer; where all of them deny, nothing
 * allows the call, and none of them is said to match.
 */
function addDepending(finding: RuleFinding, depending: readonly Rule[], source: MatchedRule['source']): void {
  const settled = finding.effect;
  if (settled === undefined && source === 'policy') {
    const mildest = depending.reduce((a, b) => (SEVERITY[b.effect] < SEVERITY[a.effect] ? b : a));
    // None of them may match.
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

/** Whether the condition of a rule, or the amount of its limit, which failed, mentions a body that was not read, or the refs that stand in it. */
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
  // Which calls it is about was looked at when none was found.
  if (rule.after !== undefined && !earlier && call?.earlier !== undefined && call.recorded === undefined) return 'no';
  const selected = selects(rule, question);
  if (rule.after !== undefined && !earlier && (selected === 'yes' || typeof selected === 'object')) {
    const isUntold = call?.untold?.some((one) => one.source === source && one.place === rule.place);
    return call?.earlier === undefined || isUntold ? 'depends' : 'no';
  }
  return selected === 'yes' && rule.limit !== undefined ? beyondLimit(rule, source, question) : selected;
}

/** The earlier call for which a rule applies that looks back. */
export const earlierOf = ({ place }: Rule, source: MatchedRule['source'], { call }: Ask): Earlier | undefined =>
  call?.earlier?.find((one) => one.source === source && one.place === place);

/** Whether the call would bring the period over the limit of a rule that counts it. */
function beyondLimit({ name }: Rule, source: MatchedRule['source'], { ask: { call } }: Question): Match {
  if (call?.charges === undefined || call.recorded !== undefined) return 'depends';
  const charge = call.charges.find((one) => one.source === source && one.rule === name);
  if (charge === undefined) return 'no';
  if (charge.error !== undefined) return { error: charge.error };
  return isOver(charge) ? 'yes' : 'no';
}
