/**
 * What stands between an agent and a scope, and whether a grant would lift it (specification, Access request): asked of
 * `decide`, once as things are and once as they would be.
 */
import { decide } from './decide.ts';
import type { Ask, Facts, Grant, Instant, Verdict } from './facts.ts';

export type Access =
  | { kind: 'usable'; detail: string }
  /** `scope_denied`: neither allowed nor denied by anybody yet, so that beside the grant a policy has to say something. */
  | { kind: 'missing'; reason: 'not_granted' | 'grant_expired' | 'scope_denied'; detail: string }
  /** No grant of the scope would help: a rule denies it, the limits of the grant refuse every call, or it leads nowhere. */
  | { kind: 'refused'; detail: string };

/**
 * Whether an agent can use a scope now. Breakers count for nothing here, because they close by themselves; what a rule says
 * of some calls only is left to those calls. Pure.
 *
 * @param now milliseconds since the epoch
 */
export function accessTo(facts: Facts, asked: Ask, now: Instant): Access {
  const { platformId, scope, connectionId } = asked;
  const nowhere = leadsNowhere(facts, platformId, scope);
  if (nowhere !== undefined) return { kind: 'refused', detail: nowhere };
  const ask = { platformId, scope, ...(connectionId !== undefined && { connectionId }) };
  const { agent } = facts;
  const calm = {
    ...facts,
    breakers: [],
    ...(agent.parent && { agent: { ...agent, parent: { ...agent.parent, breakers: [] } } }),
  };
  const today = decide(calm, ask, now);
  const granted =
    today.kind === 'deny'
      ? decide({ ...calm, grants: withScope(facts, platformId, scope, today.grant) }, ask, now)
      : today;
  const beyond = outOfReach(facts, scope, granted.grant);
  if (beyond !== undefined) return { kind: 'refused', detail: beyond };
  if (today.kind !== 'deny') return { kind: 'usable', detail: today.detail };
  if (granted.kind !== 'deny') {
    const reason = today.reason === 'grant_expired' ? 'grant_expired' : 'not_granted';
    return { kind: 'missing', reason, detail: today.detail };
  }
  const { detail } = granted;
  return isUndecided(granted) ? { kind: 'missing', reason: 'scope_denied', detail } : { kind: 'refused', detail };
}

/** A scope that covers no operation allows nothing, whoever grants it. The tools of an MCP server come and go. */
function leadsNowhere({ platform }: Facts, platformId: string, scope: string): string | undefined {
  if (platform === undefined) return `there is no platform ${platformId}`;
  const operations = platform.rules.scopes.get(scope);
  if (operations === undefined && platform.rules.kind !== 'mcp') return `${platformId} has no scope "${scope}"`;
  return operations?.length === 0 ? `no operation of ${platformId} falls under "${scope}"` : undefined;
}

/** Why the grant leaves nothing to call under a scope, even if it had it. */
function outOfReach({ platform }: Facts, scope: string, grant: Grant | undefined): string | undefined {
  if (platform === undefined || grant === undefined || platform.rules.isReachable(scope, grant.constraints))
    return undefined;
  const limits = (['repos', 'refs', 'ref_changes'] as const).filter((one) => grant.constraints[one] !== undefined);
  return `the limits of the grant (${limits.join(', ')}) refuse every call under "${scope}"; an owner would have to change them`;
}

/** The grants as they would be if an owner granted the scope: added to the grant that is asked for it, without an end. */
function withScope({ grants }: Facts, platformId: string, scope: string, used: Grant | undefined): readonly Grant[] {
  if (used === undefined) {
    const made = { id: '', platformId, connectionId: null, constraints: {}, requireApproval: false, expiresAt: null };
    return [{ ...made, scopes: [scope] }];
  }
  // By its id: a child's grant comes narrowed by its parent's, which no owner of the child's grant can change.
  return grants.map((one) => (one.id === used.id ? { ...one, scopes: [...one.scopes, scope], expiresAt: null } : one));
}

/** Denied because nothing allows it, and not because something denies it. */
export function isUndecided({ reason, matched }: Extract<Verdict, { kind: 'deny' }>): boolean {
  if (reason === 'no_policy_assigned') return true;
  return reason === 'denied_by_policy' && !matched.some((one) => one.source === 'policy' && one.effect === 'deny');
}
