/** The checks by rules: the guardrails, and the agent's policy. */

import { present } from '../../runtime/present.ts';
import { describeEarlier } from '../earlier.ts';
import type { DenyReason, MatchedRule } from '../facts.ts';
import { type CheckInput, deny, type Finding, PASS } from '../finding.ts';
import { describeLimitUse, type ReportedLimit, reportedLimit } from '../limit.ts';
import { whyNotMasked } from '../masks/checks.ts';
import type { PlatformRules } from '../platform-rules.ts';
import type { Hold } from '../standing-terms.ts';
import { earlierOf, matchRules, type RuleFinding } from './rules.ts';

export function checkGuardrails(matter: CheckInput): Finding {
  const { facts, question } = matter;
  const found = matchRules(facts.guardrails.rules, 'guardrail', question);
  const { matched, conditional, rule } = found;
  const more = { ...unreadOf(found), ...limitOf(found, 'guardrail', matter) };
  const explanation = whyRuleApplies(found, 'guardrail', matter);
  const masks = masksOf(found, { who: 'guardrail', reason: 'denied_by_guardrail' }, matter);
  switch (found.effect) {
    case 'deny':
      return {
        ...deny('denied_by_guardrail', sentence(found, 'guardrail', 'denies this call', explanation), more),
        matched,
      };
    case 'suspend':
      return {
        ...deny(
          'denied_by_guardrail',
          sentence(found, 'guardrail', 'denies this call and suspends the agent', explanation),
          {
            suspend: { guardrail: present(rule, 'rule').name },
            ...more,
          },
        ),
        matched,
      };
    case 'require_approval': {
      if (masks.kind === 'deny') return masks;
      const detail = sentence(found, 'guardrail', requires(found), explanation);
      const holds = holdsOf('guardrail', found);
      const { masking } = masks;
      const reason = 'approval_required_by_guardrail';
      return { kind: 'hold', reason, detail, matched, conditional, holds, ...more, ...(masking && { masking }) };
    }
    default:
      if (masks !== PASS) return { ...masks, conditional };
      return conditional ? { kind: 'pass', matched, conditional } : PASS;
  }
}

export function checkPolicy(matter: CheckInput): Finding {
  const { policy } = matter.facts;
  if (policy === undefined)
    return deny('no_policy_assigned', 'the agent has no policy, and nothing is allowed without one');
  const found = matchRules(policy.rules, 'policy', matter.question);
  const { matched, conditional } = found;
  const more = { ...unreadOf(found), ...limitOf(found, 'policy', matter) };
  const explanation = whyRuleApplies(found, 'policy', matter);
  const who = `policy "${policy.name}",`;
  const masks = masksOf(found, { who, reason: 'denied_by_policy' }, matter);
  switch (found.effect) {
    case 'allow':
      return masks === PASS ? { kind: 'pass', matched, conditional } : { ...masks, conditional };
    case 'require_approval':
      if (masks.kind === 'deny') return masks;
      return {
        ...(masks.masking && { masking: masks.masking }),
        kind: 'hold',
        reason: 'approval_required_by_policy',
        detail: sentence(found, who, requires(found), explanation),
        matched,
        conditional,
        holds: holdsOf('policy', found),
        ...more,
      };
    case undefined: {
      const failures = found.failures.length === 0 ? '' : `; ${found.failures.join('; ')}`;
      const detail = `no rule of policy "${policy.name}" allows this call${besides(matter)}${failures}`;
      return denyUnknown(matter, 'denied_by_policy', detail, unreadOf(found));
    }
    default:
      return { ...deny('denied_by_policy', sentence(found, who, 'denies this call', explanation), more), matched };
  }
}

function requires({ rule }: Pick<RuleFinding, 'rule'>): string {
  const approvers = rule?.approvers ?? 1;
  return approvers === 1 ? 'requires an approval' : `requires the approval of ${approvers} people`;
}

/** Returns the rules that mask the platform's answer; a refusal when masking is not possible. */
function masksOf(
  { masking, matched }: RuleFinding,
  { who, reason }: { who: string; reason: DenyReason },
  { question }: CheckInput,
): Extract<Finding, { kind: 'pass' | 'deny' }> {
  const [first] = masking;
  if (first === undefined) return PASS;
  const why = whyNotMasked(masking, question);
  if (why === undefined) return { kind: 'pass', matched, masking };
  return { kind: 'deny', reason, detail: `${who} ${first.name} masks what this call is answered, and ${why}`, matched };
}

/** Returns a refusal of something not granted or not allowed; when the platform or the scope does not exist, the detail states it. */
export function denyUnknown(
  matter: CheckInput,
  reason: DenyReason,
  detail: string,
  more: { unread?: true } = {},
): Finding {
  const { facts, grant, question } = matter;
  const { platformId, scope } = question.ask;
  const { platform } = facts;
  if (platform === undefined)
    return deny(reason, `${detail}; the organisation has no such platform`, { ...more, notGrantable: true });
  const { rules } = platform;
  const problem = unknownScope(platformId, scope, rules);
  // The tools of an MCP server change at any time, and their scopes with them.
  const isUnknown = problem !== '' && rules.kind !== 'mcp';
  const isGrantable = !isUnknown && rules.isReachable(scope, grant?.constraints ?? {});
  return deny(reason, `${detail}${problem}`, { ...more, ...(!isGrantable && { notGrantable: true }) });
}

/** Returns the further scopes of a call, as the end of a sentence; empty for a call that needs one scope. */
function besides({ question: { ask, others } }: CheckInput): string {
  const further = new Set(others.map((one) => one.ask.scope).filter((scope) => scope !== ask.scope));
  return further.size === 0 ? '' : `, which also needs ${[...further].join(' and ')}`;
}

const holdsOf = (source: 'policy' | 'guardrail', { holding }: RuleFinding): Hold[] =>
  holding.map(({ place: rule, name, lasting }) => ({ source, rule, name, lasting }));

const unreadOf = ({ unread }: RuleFinding): { unread?: true } => (unread ? { unread } : {});

/** Returns the limit of the deciding rule, if it has one. */
function limitOf(
  { rule }: RuleFinding,
  source: MatchedRule['source'],
  { question: { ask }, now }: CheckInput,
): { limit?: ReportedLimit } {
  const charge = rule?.limit && ask.call?.charges?.find((one) => one.source === source && one.rule === rule.name);
  return charge ? { limit: reportedLimit(charge, now) } : {};
}

/** Returns why the deciding rule applies, beyond its text: the used part of its limit, or the agent's earlier call. */
function whyRuleApplies(found: RuleFinding, source: MatchedRule['source'], matter: CheckInput): string {
  const { rule } = found;
  const { limit } = limitOf(found, source, matter);
  const earlier = rule?.after && earlierOf(rule, source, matter.question.ask);
  return `${limit ? `: ${describeLimitUse(limit)}` : ''}${earlier ? `: ${describeEarlier(earlier)}` : ''}`;
}

function sentence({ rule, matched }: RuleFinding, who: string, does: string, explanation: string): string {
  const { name, effect, says } = present(rule, 'rule');
  const error = matched.find((one) => one.name === name && one.effect === effect)?.error;
  const why = error === undefined ? explanation : `, because its condition failed: ${error}`;
  return `${who} ${name}${says === undefined ? '' : ` (${says})`} ${does}${why}`;
}

const MAX_SHOWN = 100;

/**
 * Returns the end of a refusal's sentence, such as `; platform shop has no scope "orders:read", but "shop:orders.read"`; empty when the manifest has the
 * scope, of operations or of content rules.
 */
function unknownScope(platformId: string, scope: string, { scopes, content }: PlatformRules): string {
  if (scopes.has(scope) || content.some((rule) => rule.scope === scope)) return '';
  const written = scope.slice(0, MAX_SHOWN);
  const actions = [fold(written), fold(actionOf(written))];
  const meant = [...scopes.keys()].find((name) => actions.includes(fold(actionOf(name))));
  const but = meant === undefined ? '' : `, but ${JSON.stringify(meant)}`;
  return `; platform ${platformId} has no scope ${JSON.stringify(written)}${but}`;
}

/** Returns the part after the platform's id, which agents often omit or misspell. */
const actionOf = (scope: string): string => scope.slice(scope.indexOf(':') + 1);
const fold = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
