/**
 * Policies and guardrails: compiled once per version, matched on every decision. The most severe matching effect wins
 * (suspend and deny, then require_approval, then allow), so the order of rules never matters.
 */

import type { Condition, ConditionInput, Evaluated } from './compiled-condition.ts';
import { type ConditionAgent, compileCondition, conditionInput } from './condition.ts';
import type { Ask, Facts, Guardrails, Instant, MatchedRule, Policy, Rule, RuleSource } from './facts.ts';
import { compilePattern, type Pattern, type Relation } from './pattern.ts';
import type { PlatformRules } from './platform-rules.ts';
import { present } from './present.ts';
import { coverageOf } from './rule-coverage.ts';
import { ruleInWords } from './rule-words.ts';
import { type Spelling, spellingsOf } from './spelling.ts';

/** Where in a list of rules something is wrong, such as `[2, 'endpoints', 0]`, and what. */
export type RuleProblem = { path: readonly (string | number)[]; message: string };

/** What a list of rules says about an ask. */
export type RuleFinding = {
  /** Undefined: no rule matches. */
  effect: Rule['effect'] | undefined;
  /** The first rule with that effect. */
  rule?: Rule;
  /** The rules that matched, in the order in which they are written. */
  matched: MatchedRule[];
  /** Without a concrete call: a rule that depends on the call may still change the effect. */
  conditional: boolean;
  /** Allow rules that did not apply because their condition failed: `rule 1: …`. */
  failures: string[];
};

/** An ask, with what rules need of it, computed when the first rule needs it. */
export type Question = {
  ask: Ask;
  platform: PlatformRules | undefined;
  spellings(): readonly Spelling[];
  input(): ConditionInput;
  /** Of a child: the same, asked by its parent. */
  byParent?: Question;
};

const SEVERITY: Record<Rule['effect'], number> = { allow: 1, require_approval: 2, deny: 3, suspend: 4 };
const MAX_RULES = 500;

/** Compiles a policy version. @throws Error with the first problem; `ruleProblems` lists them all. */
export function compilePolicy(source: {
  id: string;
  name: string;
  version: number;
  rules: readonly RuleSource[];
}): Policy {
  const { id, name, version } = source;
  return { id, name, version, rules: compileRules(source.rules, 'policy') };
}

/** Compiles a version of the guardrails. @throws Error with the first problem; `ruleProblems` lists them all. */
export function compileGuardrails(source: { version: number; rules: readonly RuleSource[] }): Guardrails {
  return { version: source.version, rules: compileRules(source.rules, 'guardrail') };
}

/** Everything that is wrong with a list of rules; empty when it compiles. */
export function ruleProblems(rules: readonly RuleSource[], kind: MatchedRule['source']): RuleProblem[] {
  return readRules(rules, kind).problems;
}

/** Prepares an ask for `matchRules`. */
export function questionOf(facts: Facts, ask: Ask, now: Instant): Question {
  const { parent } = facts.agent;
  const question = questionBy(facts.agent, facts, ask, now);
  if (parent === undefined) return question;
  const { id, agentId, name, ownerId } = parent;
  const { organisationId } = facts.agent;
  return { ...question, byParent: questionBy({ id, agentId, name, ownerId, organisationId }, facts, ask, now) };
}

function questionBy(who: ConditionAgent, facts: Facts, ask: Ask, now: Instant): Question {
  const { call } = ask;
  let spellings: readonly Spelling[] | undefined;
  let input: ConditionInput | undefined;
  return {
    ask,
    platform: facts.platform?.rules,
    spellings: () => (spellings ??= call === undefined ? [] : spellingsOf(call.path)),
    input: () =>
      (input ??= conditionInput(who, { ...ask, call: present(call, 'call') }, now, facts.platform?.rules.isForm)),
  };
}

/**
 * Matches rules against an ask: a concrete call, or a standing question about the scope as a whole. Rules may name an agent
 * (`agent.name`), and a child bears whatever name its parent gave it: the rules have to let both of them, and what is said to
 * the one that they let less is the answer.
 */
export function matchRules(rules: readonly Rule[], source: MatchedRule['source'], question: Question): RuleFinding {
  const own = matchOne(rules, source, question);
  if (question.byParent === undefined || question.ask.call === undefined || !rules.some((rule) => rule.when))
    return own;
  const parents = matchOne(rules, source, question.byParent);
  return severityOf(parents, source) > severityOf(own, source) ? parents : own;
}

/** What no rule of a policy lets pass is denied. */
function severityOf({ effect }: RuleFinding, source: MatchedRule['source']): number {
  if (effect !== undefined) return SEVERITY[effect];
  return source === 'policy' ? SEVERITY.deny : 0;
}

function matchOne(rules: readonly Rule[], source: MatchedRule['source'], question: Question): RuleFinding {
  const finding: RuleFinding = { effect: undefined, matched: [], conditional: false, failures: [] };
  const depending: Rule[] = [];
  for (const rule of rules) {
    if (!namesAsk(rule, question.ask)) continue;
    const match = question.ask.call === undefined ? matchStanding(rule, question) : matchCall(rule, question);
    if (match === 'no') continue;
    if (match === 'depends') depending.push(rule);
    else if (match === 'yes' || rule.effect !== 'allow')
      take(finding, rule, source, match === 'yes' ? undefined : match.error);
    else finding.failures.push(`the condition of ${rule.name} failed: ${match.error}`);
  }
  if (depending.length > 0) addDepending(finding, depending, source);
  return finding;
}

/**
 * Rules that depend on the call do not decide a standing question: beside rules that surely match they only make the
 * answer conditional. Alone, the mildest of them is the best that a call can hope for, and the answer.
 */
function addDepending(finding: RuleFinding, depending: readonly Rule[], source: MatchedRule['source']): void {
  const settled = finding.effect;
  if (settled === undefined && source === 'policy') {
    const mildest = depending.reduce((a, b) => (SEVERITY[b.effect] < SEVERITY[a.effect] ? b : a));
    take(finding, mildest, source);
    finding.conditional = mildest.effect !== 'deny';
    return;
  }
  const severity = settled === undefined ? 0 : SEVERITY[settled];
  finding.conditional = depending.some((rule) => SEVERITY[rule.effect] > severity);
}

function take(finding: RuleFinding, rule: Rule, source: MatchedRule['source'], error?: string): void {
  finding.matched.push({ source, name: rule.name, effect: rule.effect, ...(error !== undefined && { error }) });
  if (finding.effect !== undefined && SEVERITY[rule.effect] <= SEVERITY[finding.effect]) return;
  finding.effect = rule.effect;
  finding.rule = rule;
}

function namesAsk(rule: Rule, ask: Ask): boolean {
  return anyMatches(rule.platforms, ask.platformId) && anyMatches(rule.scopes, ask.scope);
}

function anyMatches(patterns: readonly Pattern[] | undefined, text: string): boolean {
  return patterns === undefined || patterns.some((pattern) => pattern.matches(text));
}

function matchStanding(rule: Rule, { platform, ask }: Question): 'yes' | 'no' | 'depends' {
  const coverage: Relation = platform === undefined ? 'some' : rule.coverage(platform, ask.scope);
  if (coverage === 'none') return 'no';
  return coverage === 'some' || rule.when !== undefined ? 'depends' : 'yes';
}

function matchCall(rule: Rule, question: Question): 'yes' | 'no' | { error: string } {
  const call = present(question.ask.call, 'call');
  if (rule.methods !== undefined && !rule.methods.includes(call.method)) {
    // What a server says of its own tool never loosens anything.
    if (rule.effect === 'allow' || call.actsAs === undefined || !rule.methods.includes(call.actsAs)) return 'no';
  }
  if (rule.endpoints !== undefined && !matchesPath(rule, call.path, question)) return 'no';
  if (rule.when === undefined) return 'yes';
  const result = stricter(rule, rule.when.evaluate(question.input()));
  return result.ok ? (result.value ? 'yes' : 'no') : { error: result.error };
}

/** Of two readings of a call, the one that gives the agent less. */
function stricter(rule: Rule, { loosely, ...exactly }: ReturnType<Condition['evaluate']>): Evaluated {
  if (loosely === undefined || !exactly.ok || exactly.value === (rule.effect !== 'allow')) return exactly;
  return loosely;
}

/** Permission is byte for byte; what denies or holds also takes other spellings of the path. */
function matchesPath(rule: Rule, path: string, question: Question): boolean {
  const endpoints = present(rule.endpoints, 'endpoints');
  if (rule.effect === 'allow') return endpoints.some((pattern) => pattern.matches(path));
  return endpoints.some((pattern) => pattern.matchesAnySpelling(path, question.spellings()));
}

function compileRules(sources: readonly RuleSource[], kind: MatchedRule['source']): Rule[] {
  const { rules, problems } = readRules(sources, kind);
  const [problem] = problems;
  if (problem !== undefined) throw new Error(`${kind} rule ${problem.path.join('/')}: ${problem.message}`);
  return rules;
}

function readRules(sources: readonly RuleSource[], kind: MatchedRule['source']) {
  const problems: RuleProblem[] = [];
  if (sources.length > MAX_RULES) problems.push({ path: [], message: `there are at most ${MAX_RULES} rules` });
  const rules = sources.map((source, i): Rule => {
    const note = (message: string, ...path: (string | number)[]) => problems.push({ path: [i, ...path], message });
    if (kind === 'policy' && source.effect === 'suspend') note('only a guardrail suspends; write `deny`', 'effect');
    if (kind === 'guardrail') checkGuardrail(sources, i, note);
    const patterns = (field: 'platforms' | 'scopes' | 'endpoints', form: 'text' | 'path') =>
      source[field]?.flatMap((text, j) => {
        try {
          return [compilePattern(text, form)];
        } catch (error) {
          note(error instanceof Error ? error.message : 'not a pattern', field, j);
          return [];
        }
      });
    const [platforms, scopes] = [patterns('platforms', 'text'), patterns('scopes', 'text')];
    const endpoints = patterns('endpoints', 'path');
    const condition = source.when === undefined ? undefined : compileCondition(source.when);
    if (condition?.ok === false) note(condition.error, 'when');
    return {
      name: source.name ?? `rule ${i + 1}`,
      ...(source.name === undefined && { says: ruleInWords(source) }),
      effect: source.effect,
      ...(platforms && { platforms }),
      ...(scopes && { scopes }),
      ...(source.methods && { methods: source.methods }),
      ...(endpoints && { endpoints }),
      ...(condition?.ok && { when: condition.condition }),
      coverage: coverageOf({ effect: source.effect, methods: source.methods, endpoints }),
    };
  });
  return { rules, problems };
}

function checkGuardrail(
  sources: readonly RuleSource[],
  i: number,
  note: (message: string, ...path: (string | number)[]) => void,
): void {
  const { effect, name } = present(sources[i], 'rule');
  if (effect === 'allow') note('a guardrail never allows; write `deny`, `require_approval` or `suspend`', 'effect');
  if (!name) note('a guardrail has a name', 'name');
  else if (sources.findIndex((other) => other.name === name) < i) note(`there are two guardrails "${name}"`, 'name');
}
