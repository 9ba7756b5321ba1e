/** The checks of the decision: those of every question, and those of a concrete call. */
import { present } from '../runtime/present.ts';
import { connectionChoices } from './attenuation.ts';
import { refuses, refusesUntil } from './breaker.ts';
import { furtherScopes } from './content-rules.ts';
import {
  type BreakerFacts,
  type CallAsk,
  type CheckName,
  type CONCRETE_CHECKS,
  type Grant,
  type Instant,
  METHODS,
  type ParentFacts,
  type STANDING_CHECKS,
} from './facts.ts';
import { type Check, type CheckInput, deny, type Finding, PASS } from './finding.ts';
import { haltOf } from './halt.ts';
import { classify } from './operation.ts';
import type { PlatformRules } from './platform-rules.ts';
import { refuseRecipients } from './recipients.ts';
import { refusePushOptions, refuseRefs } from './refs/refs.ts';
import { refuseRepositories } from './repos.ts';
import { checkGuardrails, checkPolicy, denyUnknown } from './rules/checks.ts';

/** Those of every question, including those without a concrete call (specification, TRQP response base). In the order of STANDING_CHECKS. */
export const standingChecks: readonly Check<(typeof STANDING_CHECKS)[number]>[] = [
  ['status', checkStatus],
  ['grant', checkGrant],
  ['ttl', checkTtl],
  ['breaker', checkBreaker],
  ['child_liveness', checkChildLiveness],
  ['guardrails', checkGuardrails],
  ['policy', checkPolicy],
  ['scope', checkScope],
];

const BREAKER_OPEN = 'a circuit breaker of the agent is open';

/** The checks by which every call of the agent is refused, whatever it asks for: its status, a breaker that halts it, or the same of its parent. */
export const agentChecks: readonly (readonly [CheckName, (at: Pick<CheckInput, 'facts' | 'now'>) => Finding])[] = [
  ['status', checkStatus],
  [
    'breaker',
    ({ facts: { agent, breakers }, now }) => {
      const halt = haltOf(agent, breakers, now);
      return halt === undefined ? PASS : deny('circuit_breaker_open', BREAKER_OPEN, { halt });
    },
  ],
  ['child_liveness', ({ facts: { agent }, now }) => checkParent(agent.parent, now, agentWide(agent.parent?.breakers))],
];

/** Breakers of single platforms halt no agent. */
const agentWide = (breakers: readonly BreakerFacts[] = []) =>
  breakers.filter(({ platformId }) => platformId === undefined);

function checkStatus({ facts: { agent }, now }: Pick<CheckInput, 'facts' | 'now'>): Finding {
  if (agent.status === 'active' && (agent.expiresAt === null || agent.expiresAt > now)) return PASS;
  const halt = haltOf(agent, [], now);
  if (halt === undefined) {
    const when = agent.status === 'pending' ? 'collected' : 'bound';
    return deny('agent_inactive', `the agent is ${agent.status}: it may call once its key is ${when}`);
  }
  if (halt.state === 'suspended') return deny('agent_suspended', 'the agent is suspended', { halt });
  const expired = halt.cause === 'unknown' && agent.expiresAt !== null && agent.expiresAt <= now;
  return deny('agent_revoked', expired ? 'the agent expired' : 'the agent is revoked', { halt });
}

function checkGrant(matter: CheckInput): Finding {
  const { facts, grant, question } = matter;
  const { platform, grants } = facts;
  const { ask } = question;
  if (platform === undefined || grant === undefined) {
    const choices = platform === undefined ? [] : connectionChoices(grants, ask, platform.defaultConnectionId);
    if (choices.length > 0) return deny('scope_not_granted', nameOneOf(choices, ask.platformId));
    const where = ask.connectionId === undefined ? '' : ' for this connection';
    return denyUnknown(matter, 'no_permission_record', `the agent has no grant on platform ${ask.platformId}${where}`);
  }
  if (platform.suspended)
    return deny('platform_suspended', `the organisation has suspended platform ${ask.platformId}`);
  if (!grant.requireApproval) return PASS;
  return BY_GRANT;
}

const BY_GRANT: Finding = Object.freeze({
  kind: 'hold',
  reason: 'approval_required_by_grant',
  detail: 'every call with this grant needs an approval',
  holds: Object.freeze([{ source: 'grant' as const }]),
});

const MAX_NAMED = 20;

/** The refusal of an agent that has to name which of its connections a call uses. */
function nameOneOf(choices: readonly Grant[], platformId: string): string {
  const named = choices
    .map(({ connectionId, connection }) => (connection ? `${connection.label} (${connectionId})` : connectionId))
    .sort()
    .slice(0, MAX_NAMED)
    .join(', ');
  const more = choices.length > MAX_NAMED ? ` and ${choices.length - MAX_NAMED} more` : '';
  return `the agent has grants on several connections of ${platformId} and none on its default connection: say in connection_id which is meant, one of ${named}${more}`;
}

function checkTtl({ grant, now }: CheckInput): Finding {
  if (grant === undefined || grant.expiresAt === null || grant.expiresAt > now) return PASS;
  return deny('grant_expired', 'the grant has expired');
}

function checkBreaker({ facts: { agent, breakers }, now }: CheckInput): Finding {
  const until = refusedUntil(breakers, now);
  if (until === undefined) return PASS;
  const halt = haltOf(agent, breakers, now);
  if (halt !== undefined) return deny('circuit_breaker_open', BREAKER_OPEN, { halt });
  const platform = refusedPlatform(breakers, now);
  return deny('circuit_breaker_open', `${platform?.refusedPlatformId} failed too often: its circuit breaker is open`, {
    retryAfterSeconds: secondsUntil(until, now),
    ...platform,
  });
}

/** Returns until when at least one of these breakers refuses; undefined when none refuses now. */
function refusedUntil(breakers: readonly BreakerFacts[], now: Instant): Instant | undefined {
  let until: Instant | undefined;
  for (const breaker of breakers) if (refuses(breaker, now)) until = Math.max(until ?? 0, refusesUntil(breaker));
  return until;
}

/** Returns the platform whose breaker refuses; empty when a breaker of all platforms refuses. */
function refusedPlatform(breakers: readonly BreakerFacts[], now: Instant): { refusedPlatformId?: string } {
  const refusing = breakers.filter((breaker) => refuses(breaker, now));
  const [platformId] = refusing.map((breaker) => breaker.platformId);
  return platformId === undefined || agentWide(refusing).length > 0 ? {} : { refusedPlatformId: platformId };
}

const secondsUntil = (until: Instant, now: Instant): number => Math.ceil((until - now) / 1000);

/** The parent's halt is not the child's: no `halt` (specification, ActionDenied). */
function checkChildLiveness({ facts: { agent }, now }: CheckInput): Finding {
  return checkParent(agent.parent, now);
}

function checkParent(parent: ParentFacts | undefined, now: Instant, breakers = parent?.breakers ?? []): Finding {
  if (parent === undefined) return PASS;
  if (parent.expiresAt !== null && parent.expiresAt <= now) return deny('agent_revoked', 'the parent agent expired');
  if (parent.status === 'active') {
    const until = refusedUntil(breakers, now);
    if (until === undefined) return PASS;
    return deny('circuit_breaker_open', 'a circuit breaker of the parent agent is open', {
      retryAfterSeconds: secondsUntil(until, now),
      ...refusedPlatform(breakers, now),
    });
  }
  if (parent.status === 'suspended') return deny('agent_suspended', 'the parent agent is suspended');
  return deny('agent_revoked', 'the parent agent is no longer active');
}

function checkScope(matter: CheckInput): Finding {
  if (matter.grant?.scopes.includes(matter.question.ask.scope)) return PASS;
  return denyUnknown(matter, 'scope_not_granted', 'the grant does not include this scope');
}

/** In the order of CONCRETE_CHECKS. Run only for a concrete call, and after the standing checks have found a grant. */
export const concreteChecks: readonly Check<(typeof CONCRETE_CHECKS)[number]>[] = [
  ['endpoint', checkEndpoint],
  ['recipient_constraints', checkRecipients],
  ['reach', checkReach],
];

/** Denies a GraphQL call that cannot be parsed, too; a caller that must answer 400 instead classifies the call beforehand. */
function checkEndpoint({ facts: { platform }, grant, question: { ask, classified } }: CheckInput): Finding {
  const { rules } = present(platform, 'platform');
  const call = present(ask.call, 'call');
  const found = present(classified(), 'classification');
  if (found.kind === 'malformed') return deny('endpoint_scope_mismatch', found.error);
  if (found.kind === 'unclassified') {
    const why = found.why ?? `no scope of platform ${ask.platformId} covers ${name(call)}`;
    return deny('endpoint_scope_mismatch', `${why}${otherMethods(rules, call)}`, unread(found));
  }
  if (found.scopes.includes(ask.scope)) {
    const held = present(grant, 'grant').scopes;
    const lacking = furtherScopes(found, ask.scope, held).filter((scope) => !held.includes(scope));
    if (lacking.length === 0) return PASS;
    const why = `needs ${lacking.join(' and ')} in addition to ${ask.scope}, which the grant does not include`;
    return deny('endpoint_scope_mismatch', `the call ${why}`);
  }
  const other = found.scopes.length > 0 ? `; it needs ${found.scopes.join(' or ')}` : '';
  return deny('endpoint_scope_mismatch', `the scope does not cover ${name(call)}${other}`);
}

function checkRecipients({ facts: { platform }, grant, question: { ask } }: CheckInput): Finding {
  const allowed = present(grant, 'grant').constraints.recipients;
  if (allowed === undefined) return PASS;
  const refused = refuseRecipients(allowed, present(platform, 'platform').rules, present(ask.call, 'call'));
  return refused === undefined ? PASS : refusedAs('recipient_not_allowed', refused);
}

/** A refused ref has the reason of a refused repository: the specification's list of reasons is closed. */
function checkReach({ facts: { platform }, grant, question: { ask } }: CheckInput): Finding {
  const { constraints } = present(grant, 'grant');
  const call = present(ask.call, 'call');
  const { rules } = present(platform, 'platform');
  const refused =
    (constraints.repos && refuseRepositories(constraints, call, rules)) ??
    refuseRefs(constraints, rules, call) ??
    refusePushOptions(constraints, rules, call);
  return refused === undefined ? PASS : refusedAs('repo_not_allowed', refused);
}

type Refused = { violating: string[]; detail: string; unread?: true };

const refusedAs = (reason: 'recipient_not_allowed' | 'repo_not_allowed', refused: Refused): Finding =>
  deny(reason, refused.detail, { violating: refused.violating, ...unread(refused) });

const unread = (found: { unread?: true }): { unread?: true } => (found.unread ? { unread: true } : {});

/** Names the methods under which the path is covered: a wrong method is easily mistaken for a missing scope. */
function otherMethods(rules: PlatformRules, call: CallAsk): string {
  const covered = METHODS.flatMap((method) => {
    const found = method === call.method ? undefined : classify(rules, { ...call, method });
    return found?.kind === 'classified' ? [`${method} ${call.path} is in ${found.scopes.join(' or ')}`] : [];
  });
  return covered.length === 0 ? '' : `; ${covered.join(', ')}`;
}

function name({ method, path }: CallAsk): string {
  return `${method} ${path}`;
}
