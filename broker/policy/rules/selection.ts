/** Prepares an ask for the rules, and determines to which calls a rule applies. */

import { present } from '../../runtime/present.ts';
import { effectiveGrant } from '../attenuation.ts';
import type { CallAsk, Method } from '../call-ask.ts';
import type { Condition, ConditionInput, Evaluated } from '../conditions/compiled.ts';
import { type ConditionAgent, conditionInput } from '../conditions/condition.ts';
import { furtherScopes, neededByBody } from '../content-rules.ts';
import type { Ask, Facts, Instant, Rule } from '../facts.ts';
import { type Classification, classify } from '../operation.ts';
import type { Pattern } from '../pattern.ts';
import type { PlatformRules } from '../platform-rules.ts';
import { type Spelling, spellingsOf } from '../spelling.ts';

/** An ask, with lazily computed inputs of rules. */
export type Question = {
  ask: Ask;
  platform: PlatformRules | undefined;
  /** The scopes under which the call falls; undefined without a concrete call on a known platform. */
  classified(): Classification | undefined;
  spellings(): readonly Spelling[];
  input(): ConditionInput;
  /** The input with the method as which the call also counts (`actsAs`). */
  inputActing(method: Method): ConditionInput;
  /** The scopes that the call needs for its content besides that of the ask. */
  further: readonly string[];
  /** The same question for the parent of a child, and with each further scope that the call needs; the strictest answer counts. */
  others: readonly Question[];
};

const NONE: readonly Question[] = Object.freeze([]);
const NO_SCOPES: readonly string[] = Object.freeze([]);

/** Prepares an ask for the rules. */
export function questionOf(facts: Facts, ask: Ask, now: Instant): Question {
  const { parent } = facts.agent;
  const alone = questionBy(facts.agent, facts, ask, now);
  const further = scopesBeside(facts, alone);
  if (parent === undefined && further.length === 0) return alone;
  const question = { ...alone, further };
  const asks = [ask, ...further.map((scope) => ({ ...ask, scope }))];
  const others = asks.slice(1).map((one) => questionBy(facts.agent, facts, one, now));
  if (parent === undefined) return { ...question, others };
  const { id, agentId, name, ownerId } = parent;
  const { organisationId, labels = [] } = facts.agent;
  const by = { id, agentId, name, ownerId, organisationId, labels };
  return { ...question, others: [...others, ...asks.map((one) => questionBy(by, facts, one, now))] };
}

/** Returns the further scopes that a call needs for its content. */
function scopesBeside(facts: Facts, { ask, platform: rules, classified }: Question): readonly string[] {
  const { call } = ask;
  if (call === undefined || rules === undefined || rules.content.length === 0) return NO_SCOPES;
  const found = classified();
  if (found?.kind !== 'classified') return NO_SCOPES;
  // The body of a past call is not known: the scope under which it was made states what it held.
  const byBody = call.recorded === 'row' && neededByBody(rules.content, call, ask.scope) ? [found.scopes] : undefined;
  const { required = byBody } = found;
  if (required === undefined) return NO_SCOPES;
  return furtherScopes({ ...found, required }, ask.scope, effectiveGrant(facts, ask)?.scopes ?? []);
}

function questionBy(who: ConditionAgent, facts: Facts, ask: Ask, now: Instant): Question {
  const { call } = ask;
  const rules = facts.platform?.rules;
  let classified: Classification | undefined;
  let spellings: readonly Spelling[] | undefined;
  let input: ConditionInput | undefined;
  let acting: ConditionInput | undefined;
  const of = (made: CallAsk) => conditionInput(who, { ...ask, call: made }, now, rules);
  return {
    ask,
    platform: rules,
    classified: () => (classified ??= rules && call && classify(rules, call)),
    spellings: () => (spellings ??= call === undefined ? [] : spellingsOf(call.path)),
    input: () => (input ??= of(present(call, 'call'))),
    further: NO_SCOPES,
    others: NONE,
    inputActing: (method) => (acting ??= of({ ...present(call, 'call'), method })),
  };
}

/** Whether a rule applies to a call. `depends`: on unknown parts of the call; `error`: its condition cannot be evaluated. */
export type Match = 'yes' | 'no' | 'depends' | { error: string };

/** Whether a rule matches the platform and the scope. */
export function namesAsk(rule: Rule, ask: Ask): boolean {
  return anyMatches(rule.platforms, ask.platformId) && anyMatches(rule.scopes, ask.scope);
}

function anyMatches(patterns: readonly Pattern[] | undefined, text: string): boolean {
  return patterns === undefined || patterns.some((pattern) => pattern.matches(text));
}

/** Whether a rule applies to a concrete call; a condition that fails decides against the agent. */
export function isAbout(rule: Rule, question: Question): boolean {
  const match = selects(rule, question);
  return match === 'yes' || typeof match === 'object';
}

/** Whether a rule applies to a concrete call, regardless of its limit. */
export function selects(rule: Rule, question: Question): Match {
  if (!namesAsk(rule, question.ask)) return 'no';
  const call = present(question.ask.call, 'call');
  if (rule.methods !== undefined && !rule.methods.includes(call.method)) {
    // An MCP server's claim about its own tool never loosens a decision.
    if (rule.effect === 'allow' || call.actsAs === undefined || !rule.methods.includes(call.actsAs)) return 'no';
  }
  if (rule.endpoints !== undefined && !matchesPath(rule, call.path, question)) return 'no';
  if (rule.when === undefined) return 'yes';
  if (readsUnknown(call, rule.when)) return 'depends';
  const { when } = rule;
  const matches = (input: ConditionInput): Match => {
    const result = strictest(rule, when.evaluate(input));
    return result.ok ? (result.value ? 'yes' : 'no') : { error: result.error };
  };
  const match = matches(question.input());
  const { actsAs } = call;
  const isAsked = match === 'no' && rule.effect !== 'allow' && actsAs !== undefined && READS_METHOD.test(when.source);
  return isAsked ? matches(question.inputActing(actsAs)) : match;
}

/** May match inside a text literal, which only costs an unneeded evaluation. */
const READS_METHOD = /\bmethod\b/;

/** Whether a condition reads parts of a past call that are unknown. */
function readsUnknown({ recorded }: CallAsk, { readsUnrecorded, readsFirstTimes }: Condition): boolean {
  if (recorded === undefined) return false;
  return recorded === 'row' ? readsUnrecorded : readsFirstTimes;
}

/** Returns, of the results for all readings of a call, the one that gives the agent least. */
function strictest(rule: Rule, { others, ...exactly }: ReturnType<Condition['evaluate']>): Evaluated {
  if (others === undefined) return exactly;
  const all = [exactly, ...others];
  return all.find((one) => one.ok && one.value === (rule.effect !== 'allow')) ?? all.find((one) => !one.ok) ?? exactly;
}

/** Rules that allow match a path byte for byte; rules that deny or hold also match other spellings. */
function matchesPath(rule: Rule, path: string, question: Question): boolean {
  const endpoints = present(rule.endpoints, 'endpoints');
  if (rule.effect === 'allow') return endpoints.some((pattern) => pattern.matches(path));
  return endpoints.some((pattern) => pattern.matchesAnySpelling(path, question.spellings()));
}
