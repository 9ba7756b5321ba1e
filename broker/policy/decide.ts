/**
 * The decision function of the broker. Governed calls, replays, permissions, AuthZEN, TRQP and git all use it, so no two entry points can decide differently.
 */

import { present } from '../runtime/present.ts';
import { effectiveGrant } from './attenuation.ts';
import { agentChecks, concreteChecks, standingChecks } from './checks.ts';
import {
  type Ask,
  CONCRETE_CHECKS,
  type Facts,
  type Instant,
  type MatchedRule,
  STANDING_CHECKS,
  type Verdict,
} from './facts.ts';
import type { CheckInput, Finding } from './finding.ts';
import { maskOfCall } from './masks/checks.ts';
import type { Rule } from './rules/rule.ts';
import { questionOf } from './rules/selection.ts';
import { basisOf, standsIn } from './standing-approval.ts';
import type { Hold } from './standing-terms.ts';

const CHECKS = [...standingChecks, ...concreteChecks];
const NAMES = [...STANDING_CHECKS, ...CONCRETE_CHECKS];
/** The names of the checks, by how many checks ran: shared by all verdicts. */
const EVALUATED = CHECKS.map((_check, i) => Object.freeze(NAMES.slice(0, i + 1)));
const NOT_EVALUATED = CHECKS.map((_check, i) => Object.freeze(NAMES.slice(i + 1)));
const NO_RULES: readonly MatchedRule[] = Object.freeze([]);
const BREAKER = NAMES.indexOf('breaker');

/**
 * Decides an ask: a concrete call, or without one a standing question about a scope.
 *
 * The checks run in order. The first that denies decides, and no later check runs; when none denies, the first that holds decides, unless one standing
 * approval covers all holds. A breaker that halts the agent takes precedence over what its grants lack: the agent is halted for every call (specification,
 * ActionDenied). Pure; never throws.
 *
 * @param now milliseconds since the epoch.
 */
export function decide(facts: Facts, ask: Ask, now: Instant): Verdict {
  const matter: CheckInput = { facts, now, question: questionOf(facts, ask, now), grant: effectiveGrant(facts, ask) };
  const count = ask.call === undefined ? standingChecks.length : CHECKS.length;
  let matched = NO_RULES;
  let conditional = false;
  let masking: readonly Rule[] | undefined;
  let held: Extract<Finding, { kind: 'hold' }> | undefined;
  let holds: readonly Hold[] = [];
  for (let i = 0; i < count; i++) {
    let finding = check(i, matter);
    if (finding.kind === 'deny' && finding.halt === undefined) {
      const breaker = check(BREAKER, matter);
      if (breaker.kind === 'deny' && breaker.halt !== undefined) {
        finding = breaker;
        i = BREAKER;
      }
    }
    if (finding.matched !== undefined)
      matched = matched.length === 0 ? finding.matched : [...matched, ...finding.matched];
    if (finding.conditional === true) conditional = true;
    if (finding.masking !== undefined) masking = masking ? [...masking, ...finding.masking] : finding.masking;
    if (finding.kind === 'deny') {
      const { kind, reason, detail, halt, retryAfterSeconds, refusedPlatformId, violating, suspend, limit } = finding;
      const { notGrantable } = finding;
      return {
        kind,
        reason,
        ...commonFields(matter, i, detail, matched, false),
        ...(halt && { halt }),
        ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
        ...(refusedPlatformId !== undefined && { refusedPlatformId }),
        ...(violating && { violating }),
        ...(suspend && { suspend }),
        ...(limit && { limit }),
        ...(notGrantable && { notGrantable }),
        ...(finding.unread && { unread: true }),
      };
    }
    if (finding.kind === 'hold') {
      held ??= finding;
      holds = holds.length === 0 ? finding.holds : [...holds, ...finding.holds];
    }
  }
  const isMasked = masking !== undefined || (ask.call !== undefined && (facts.platform?.rules.masks.length ?? 0) > 0);
  const mask = isMasked ? maskOfCall(masking ?? [], matter.question) : undefined;
  const masked = mask && { mask };
  if (held !== undefined) {
    const basis = basisOf(facts, ask, matter.grant, holds);
    const standing = basis && facts.standing && standsIn(facts.standing, basis, now);
    if (standing !== undefined)
      return {
        kind: 'allow',
        reason: 'approved',
        standing,
        ...commonFields(matter, count - 1, `allowed by a standing approval: ${held.detail}`, matched, conditional),
        ...masked,
      };
    return {
      kind: 'hold',
      reason: held.reason,
      ...commonFields(matter, count - 1, held.detail, matched, conditional),
      ...masked,
      ...(held.unread && { unread: true }),
      holds,
      ...(basis && { basis }),
      decideIn: channelsToDecideIn(facts, holds, matched),
      ...approversOf(facts, holds),
      ...(held.limit && { limit: held.limit }),
    };
  }
  return {
    kind: 'allow',
    reason: 'approved',
    ...commonFields(matter, count - 1, 'every check passed', matched, conditional),
    ...masked,
  };
}

const check = (i: number, matter: CheckInput): Finding => present(CHECKS[i], 'check')[1](matter);

/**
 * Returns the refusal of an agent that is halted, contained by its parent, or not set up yet; undefined for one that may call. Used for malformed requests,
 * where there is nothing to decide: a halted agent receives its halt before the error. Pure; never throws.
 *
 * @param now milliseconds since the epoch.
 */
export function decideAgent(facts: Facts, now: Instant): Extract<Verdict, { kind: 'deny' }> | undefined {
  const findings = agentChecks.map(([, find]) => find({ facts, now }));
  const last = findings.findIndex(({ kind }) => kind === 'deny');
  const finding = findings[last];
  if (finding?.kind !== 'deny') return undefined;
  const { kind, reason, detail, halt, retryAfterSeconds } = finding;
  const evaluated = agentChecks.slice(0, last + 1).map(([name]) => name);
  const notEvaluated = NAMES.filter((name) => !evaluated.includes(name));
  return {
    kind,
    reason,
    detail,
    evaluated,
    notEvaluated,
    matched: NO_RULES,
    conditional: false,
    ...(halt && { halt }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

function commonFields(
  { grant, question: { further } }: CheckInput,
  last: number,
  detail: string,
  matched: readonly MatchedRule[],
  conditional: boolean,
) {
  const evaluated = present(EVALUATED[last], 'check');
  const notEvaluated = present(NOT_EVALUATED[last], 'check');
  return {
    detail,
    evaluated,
    notEvaluated,
    matched,
    conditional,
    ...(grant && { grant }),
    ...(further.length > 0 && { further }),
  };
}

type RulesOf = Pick<Facts, 'policy' | 'guardrails'>;

const ruleOf = ({ policy, guardrails }: RulesOf, hold: Hold): Rule | undefined =>
  hold.source === 'grant' ? undefined : (hold.source === 'policy' ? policy?.rules : guardrails.rules)?.[hold.rule];

/** Returns how many people have to approve: as many as the strictest of the rules that hold the call says. */
function approversOf(facts: RulesOf, holds: readonly Hold[]): { approvers?: number } {
  const approvers = Math.max(1, ...holds.map((hold) => ruleOf(facts, hold)?.approvers ?? 1));
  return approvers === 1 ? {} : { approvers };
}

const NOWHERE: readonly string[] = Object.freeze([]);

/**
 * Returns the names of the channels in which a held call may be decided by a button: only those that every hold of the call permits. A grant that requires
 * approvals permits none, and neither does a rule that holds because its condition failed.
 */
function channelsToDecideIn(
  facts: RulesOf,
  holds: readonly Hold[],
  matched: readonly MatchedRule[],
): readonly string[] {
  let common: readonly string[] | undefined;
  for (const hold of holds) {
    if (hold.source === 'grant') return NOWHERE;
    const { decideIn = NOWHERE } = ruleOf(facts, hold) ?? {};
    if (matched.some(({ source, name, error }) => source === hold.source && name === hold.name && error !== undefined))
      return NOWHERE;
    common = common?.filter((name) => decideIn.includes(name)) ?? decideIn;
  }
  return common ?? NOWHERE;
}
