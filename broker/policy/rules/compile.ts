/** Compiles policies and guardrails, once per version (rules.ts matches them), and validates them before they are stored. */

import { present } from '../../runtime/present.ts';
import { compileAmount, compileCondition } from '../conditions/condition.ts';
import { MAX_WITHIN_MS } from '../earlier.ts';
import type { Guardrails, MatchedRule, Policy, Rule, RuleSource } from '../facts.ts';
import type { Limit, LimitSource } from '../limit.ts';
import { maskProblems } from '../masks/mask.ts';
import { compilePattern } from '../pattern.ts';
import { spanMs } from '../span.ts';
import { coverageOf } from './coverage.ts';
import { describeRule } from './describe.ts';
import type { After, AfterSource } from './rule.ts';

/** The location of a problem in a list of rules, such as `[2, 'endpoints', 0]`, and its description. */
export type RuleProblem = { path: readonly (string | number)[]; message: string };

const MAX_RULES = 500;

/** Compiles a policy version. @throws Error with the first problem; `ruleProblems` lists them all. */
export function compilePolicy(source: {
  id: string;
  name: string;
  version: number;
  rules: readonly RuleSource[];
}): Policy {
  const { id, name, version } = source;
  return { id, name, version, ...ruleSet(source.rules, 'policy') };
}

/** Compiles a version of the guardrails. @throws Error with the first problem; `ruleProblems` lists them all. */
export function compileGuardrails(source: { version: number; rules: readonly RuleSource[] }): Guardrails {
  return { version: source.version, ...ruleSet(source.rules, 'guardrail') };
}

/** Returns every problem in a list of rules; empty when the list compiles. */
export function ruleProblems(rules: readonly RuleSource[], kind: MatchedRule['source']): RuleProblem[] {
  return readRules(rules, kind).problems;
}

function ruleSet(sources: readonly RuleSource[], kind: MatchedRule['source']) {
  const rules = compileRules(sources, kind);
  return {
    rules,
    readsFirstTimes: rules.some(
      ({ when, limit, after }) =>
        when?.readsFirstTimes === true ||
        limit?.of?.readsFirstTimes === true ||
        after?.made.when?.readsFirstTimes === true,
    ),
    readsPast: rules.some(({ limit, after }) => limit !== undefined || after !== undefined),
  };
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
    if (source.remember !== undefined && (kind === 'policy' || source.effect !== 'require_approval'))
      note('allowed only in a guardrail that requires an approval; leave it out', 'remember');
    if (source.decide_in !== undefined && source.effect !== 'require_approval')
      note('allowed only in a rule that requires an approval; leave it out', 'decide_in');
    const { approvers = 1 } = source;
    if (source.approvers !== undefined && source.effect !== 'require_approval')
      note('allowed only in a rule that requires an approval; leave it out', 'approvers');
    if (approvers > 1 && source.remember === true)
      note('a standing approval is given by one person; leave this out, or `approvers`', 'remember');
    checkMask(source, note);
    const limit = source.limit && compileLimit(source, source.limit, note);
    if (limit && kind === 'policy') checkLimitName(sources, i, note);
    const after = source.after && compileAfter(source, source.after, note);
    return {
      name: source.name ?? `rule ${i + 1}`,
      place: i,
      // A call beyond a limit, or for which several people are needed, always needs an approval of its own.
      lasting: source.limit === undefined && approvers === 1 && (kind === 'policy' || source.remember === true),
      ...(source.decide_in && { decideIn: source.decide_in }),
      ...(approvers > 1 && { approvers }),
      ...(source.name === undefined && { says: describeRule(source) }),
      effect: source.effect,
      ...compileSelection(source, source.effect, note),
      ...(source.mask && { mask: source.mask }),
      ...(limit && { limit }),
      ...(after && { after }),
    };
  });
  return { rules, problems };
}

/** Checks that a rule has `mask` exactly when its effect is "mask". Such a rule has neither limit nor `after`. */
function checkMask({ effect, mask, limit, after }: RuleSource, note: Note): void {
  if (effect !== 'mask') {
    if (mask !== undefined) note('only a rule with the effect "mask" has one', 'mask');
    return;
  }
  if (mask === undefined) note('a rule with the effect "mask" says what: mask: { members: [email] }', 'mask');
  else for (const { path, message } of maskProblems(mask)) note(message, 'mask', ...path);
  if (limit !== undefined) note('a rule that masks has none', 'limit');
  if (after !== undefined) note('a rule that masks has none', 'after');
}

type Note = (message: string, ...path: (string | number)[]) => void;
type Selecting = Pick<RuleSource, 'platforms' | 'scopes' | 'methods' | 'endpoints' | 'when'>;

/** Compiles the selection of calls to which a rule applies. */
function compileSelection(
  source: Selecting,
  effect: Rule['effect'],
  note: Note,
): Pick<Rule, keyof Selecting | 'coverage'> {
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
    ...(platforms && { platforms }),
    ...(scopes && { scopes }),
    ...(source.methods && { methods: source.methods }),
    ...(endpoints && { endpoints }),
    ...(condition?.ok && { when: condition.condition }),
    coverage: coverageOf({ effect, methods: source.methods, endpoints }),
  };
}

/** Compiles the selection of earlier calls as a rule that denies, so that of two readings of a call the one that gives the agent less counts. */
function compileAfter({ effect, limit }: RuleSource, source: AfterSource, note: Note): After {
  if (effect === 'allow')
    note('a rule that allows has none: let one that denies, or asks a person, apply after such a call', 'after');
  if (limit !== undefined) note('a rule with a limit has none: write two rules', 'after');
  const { within, ...selecting } = source;
  if (Object.values(selecting).every((member) => member === undefined))
    note('says no calls: write platforms, scopes, methods, endpoints or when', 'after');
  const withinMs = spanMs(within);
  if (withinMs === undefined || withinMs > MAX_WITHIN_MS)
    note('write a time such as "8h", at most "30d"', 'after', 'within');
  const selection = compileSelection(selecting, 'deny', (message, ...path) => note(message, 'after', ...path));
  const made: Rule = { name: '', place: 0, lasting: false, effect: 'deny', ...selection };
  return { made, text: textOf(selecting), withinMs: withinMs ?? 0 };
}

/** Returns a canonical text of the selection of earlier calls, equal for all rules that look back at the same calls: the order within lists does not matter. */
export function textOf({ platforms, scopes, methods, endpoints, when }: Selecting): string {
  const lists = [platforms, scopes, methods, endpoints].map((list) => list?.toSorted() ?? null);
  return JSON.stringify([...lists, when ?? null]);
}

function compileLimit(
  { effect, name, remember }: RuleSource,
  { most, per, of, together }: LimitSource,
  note: Note,
): Limit {
  if (effect === 'allow')
    note('a rule that allows has none: let one that denies, or asks a person, apply beyond it', 'limit');
  if (name === undefined) note('a rule with a limit has a name, by which it is counted', 'name');
  if (remember === true) note('a standing approval would let pass what is beyond the limit; leave it out', 'remember');
  const amount = of === undefined ? undefined : compileAmount(of);
  if (amount?.ok === false) note(amount.error, 'limit', 'of');
  return { most, per, together: together === true, ...(amount?.ok && { of: amount.condition }) };
}

/** Two rules of one name would share a count, and the usage of one would decide about the other. */
function checkLimitName(sources: readonly RuleSource[], i: number, note: Note): void {
  const name = sources[i]?.name;
  if (name !== undefined && sources.findIndex((other) => other.limit && other.name === name) < i)
    note(`there are two rules "${name}" with a limit, which is counted by the name of its rule`, 'name');
}

function checkGuardrail(sources: readonly RuleSource[], i: number, note: Note): void {
  const { effect, name } = present(sources[i], 'rule');
  if (effect === 'allow')
    note('a guardrail never allows; write `deny`, `require_approval`, `suspend` or `mask`', 'effect');
  if (!name) note('a guardrail has a name', 'name');
  else if (sources.findIndex((other) => other.name === name) < i) note(`there are two guardrails "${name}"`, 'name');
}
