/**
 * Whether an agent can use a scope, and whether a grant would make the scope usable (specification, Access request). Calls `decide` twice: with the facts as
 * they are, and as they would be with the grant.
 */
import { decide } from './decide.ts';
import type { Ask, Facts, Grant, Instant, Verdict } from './facts.ts';

export type Access =
  | { kind: 'usable'; detail: string }
  /** `scope_denied`: no rule allows or denies the scope yet, so a policy rule is needed in addition to the grant. */
  | { kind: 'missing'; reason: 'not_granted' | 'grant_expired' | 'scope_denied'; detail: string }
  /** A grant of the scope would not help: a rule denies it, the constraints of the grant refuse every call, or the scope covers no operation. */
  | { kind: 'refused'; detail: string };

/**
 * Returns whether an agent can use a scope now. Breakers are ignored, because they close by themselves; rules about some calls only are evaluated when those
 * calls are made. Pure.
 *
 * @param now milliseconds since the epoch
 */
export function accessTo(facts: Facts, asked: Ask, now: Instant): Access {
  const { platformId, scope, connectionId } = asked;
  const nowhere = leadsNowhere(facts, platformId, scope);
  if (nowhere !== undefined) return { kind: 'refused', detail: nowhere };
  const ask = { platformId, scope, ...(connectionId !== undefined && { connectionId }) };
  const { agent } = facts;
  const ignoringBreakers = {
    ...facts,
    breakers: [],
    ...(agent.parent && { agent: { ...agent, parent: { ...agent.parent, breakers: [] } } }),
  };
  const current = decide(ignoringBreakers, ask, now);
  const withGrant =
    current.kind === 'deny'
      ? decide({ ...ignoringBreakers, grants: withScope(facts, platformId, scope, current.grant) }, ask, now)
      : current;
  const beyond = outOfReach(facts, scope, withGrant.grant);
  if (beyond !== undefined) return { kind: 'refused', detail: beyond };
  if (current.kind !== 'deny') return { kind: 'usable', detail: current.detail };
  if (withGrant.kind !== 'deny') {
    const reason = current.reason === 'grant_expired' ? 'grant_expired' : 'not_granted';
    return { kind: 'missing', reason, detail: current.detail };
  }
  const { detail } = withGrant;
  return isUndecided(withGrant) ? { kind: 'missing', reason: 'scope_denied', detail } : { kind: 'refused', detail };
}

/**
 * Returns why no grant of the scope can allow a call: an unknown platform or scope, or a scope without operations. An unknown scope of an MCP platform is
 * accepted, because its tools change.
 */
function leadsNowhere({ platform }: Facts, platformId: string, scope: string): string | undefined {
  if (platform === undefined) return `there is no platform ${platformId}`;
  const operations = platform.rules.scopes.get(scope);
  if (operations === undefined && platform.rules.kind !== 'mcp') return `${platformId} has no scope "${scope}"`;
  return operations?.length === 0 ? `no operation of ${platformId} falls under "${scope}"` : undefined;
}

/** Returns why the constraints of the grant refuse every call under a scope, even with the scope granted. */
function outOfReach({ platform }: Facts, scope: string, grant: Grant | undefined): string | undefined {
  if (platform === undefined || grant === undefined || platform.rules.isReachable(scope, grant.constraints))
    return undefined;
  const limits = (['repos', 'refs', 'ref_changes'] as const).filter((one) => grant.constraints[one] !== undefined);
  return `the limits of the grant (${limits.join(', ')}) refuse every call under "${scope}"; an owner would have to change them`;
}

/** Returns the grants as they would be with the scope granted: added to the grant that the ask uses, with no expiry. */
function withScope({ grants }: Facts, platformId: string, scope: string, used: Grant | undefined): readonly Grant[] {
  if (used === undefined) {
    const made = { id: '', platformId, connectionId: null, constraints: {}, requireApproval: false, expiresAt: null };
    return [{ ...made, scopes: [scope] }];
  }
  // Matched by id: for a child, `used` is already attenuated by the parent's grant, which an owner of the child's grant cannot change.
  return grants.map((one) => (one.id === used.id ? { ...one, scopes: [...one.scopes, scope], expiresAt: null } : one));
}

/** Whether a call is denied because no rule allows it, rather than because a rule denies it. */
export function isUndecided({ reason, matched }: Extract<Verdict, { kind: 'deny' }>): boolean {
  if (reason === 'no_policy_assigned') return true;
  return reason === 'denied_by_policy' && !matched.some((one) => one.source === 'policy' && one.effect === 'deny');
}
