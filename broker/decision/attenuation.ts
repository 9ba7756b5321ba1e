/** Which grant an ask uses, and what is left of a child's grant beside its parent's (specification, Child identity). */
import type { Ask, Constraints, Facts, Grant, Instant } from './facts.ts';
import { intersectRecipients } from './recipients.ts';
import { intersectRepositories } from './repos.ts';

/**
 * The grant that an ask uses; undefined when there is none. With a connection: the grant on it, or the grant on the
 * default connection when it is that. Without: the grant on the default connection, else the first. A child's grant
 * comes narrowed to what its parent's grant on the same connection allows now; a parent without one leaves no scope.
 */
export function effectiveGrant(facts: Facts, ask: Ask): Grant | undefined {
  const { platform, agent } = facts;
  if (platform === undefined || platform.platformId !== ask.platformId) return undefined;
  const own = selectGrant(facts.grants, ask, platform.defaultConnectionId);
  if (own === undefined || agent.parent === undefined) return own;
  const connection = own.connectionId ?? platform.defaultConnectionId;
  const theirs = onConnection(agent.parent.grants, ask.platformId, connection, platform.defaultConnectionId);
  return theirs === undefined ? { ...own, scopes: [] } : attenuate(own, theirs);
}

/** What both grants allow. Also for issuing: a child gets at most `attenuate(asked, parent's)`. */
export function attenuate(child: Grant, parent: Grant): Grant {
  return {
    ...child,
    scopes: child.scopes.filter((scope) => parent.scopes.includes(scope)),
    constraints: intersect(child.constraints, parent.constraints),
    requireApproval: child.requireApproval || parent.requireApproval,
    expiresAt: earliest(child.expiresAt, parent.expiresAt),
  };
}

/** The earlier of two instants, of which either may be "never" (null). */
export function earliest(a: Instant | null, b: Instant | null): Instant | null {
  if (a === null) return b;
  return b === null ? a : Math.min(a, b);
}

/** Of an agent's own grants the one that an ask uses; see `effectiveGrant`. */
export function selectGrant(grants: readonly Grant[], ask: Ask, defaultConnection: string | null): Grant | undefined {
  if (ask.connectionId !== undefined) return onConnection(grants, ask.platformId, ask.connectionId, defaultConnection);
  const here = grants.filter((grant) => grant.platformId === ask.platformId);
  return (
    here.find((grant) => grant.connectionId === null) ??
    (defaultConnection === null ? undefined : here.find((grant) => grant.connectionId === defaultConnection)) ??
    here[0]
  );
}

function onConnection(
  grants: readonly Grant[],
  platformId: string,
  connection: string | null,
  defaultConnection: string | null,
): Grant | undefined {
  const here = grants.filter((grant) => grant.platformId === platformId);
  const exact = here.find((grant) => grant.connectionId === connection);
  return exact ?? (connection === defaultConnection ? here.find((grant) => grant.connectionId === null) : undefined);
}

function intersect(a: Constraints, b: Constraints): Constraints {
  const recipients = both(a.recipients, b.recipients, intersectRecipients);
  const repos = both(a.repos, b.repos, intersectRepositories);
  return {
    ...(recipients && { recipients }),
    ...(repos && { repos }),
    // Absent is off (specification, Repository constraint).
    ...(a.allow_repo_creation === true && b.allow_repo_creation === true && { allow_repo_creation: true }),
  };
}

function both<T>(a: T | undefined, b: T | undefined, meet: (a: T, b: T) => T): T | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : meet(a, b);
}
