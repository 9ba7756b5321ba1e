/** Which grant an ask uses, and what is left of a child's grant beside its parent's (specification, Child identity). */
import type { Ask, Constraints, Facts, Grant, Instant } from './facts.ts';
import { intersectRecipients } from './recipients.ts';
import { intersectRefs } from './ref-patterns.ts';
import { intersectRepositories } from './repos.ts';

/**
 * The grant that an ask uses; undefined when there is none (see `selectGrant`). A child's grant comes narrowed to what its
 * parent's grant on the same connection allows now; a parent without one leaves no scope.
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

/**
 * Of an agent's own grants the one that an ask uses, whatever their order. With a connection: the grant on it. Without: the
 * grant on the default connection, else the only one. Undefined also when several could be meant: which stored account a
 * call acts with is never left to chance (see `connectionChoices`).
 *
 * @param defaultConnection the platform's; null when it has none. A grant that names no connection is a grant on it.
 */
export function selectGrant(grants: readonly Grant[], ask: Ask, defaultConnection: string | null): Grant | undefined {
  const { platformId, connectionId } = ask;
  if (connectionId !== undefined) return onConnection(grants, platformId, connectionId, defaultConnection);
  const standard = onDefault(grants, platformId, defaultConnection);
  if (standard !== undefined) return standard;
  const [only, other] = namedConnections(grants, platformId);
  return only === undefined || other !== undefined
    ? undefined
    : onConnection(grants, platformId, only, defaultConnection);
}

/**
 * The connections among which an ask has to choose by name, because it names none and the agent has grants on several and
 * none on the default one; sorted, one grant each. Empty when there is nothing to choose.
 */
export function connectionChoices(
  grants: readonly Grant[],
  { platformId, connectionId }: Ask,
  defaultConnection: string | null,
): Grant[] {
  if (connectionId !== undefined) return [];
  if (onDefault(grants, platformId, defaultConnection) !== undefined) return [];
  const named = namedConnections(grants, platformId);
  if (named.length < 2) return [];
  return named.flatMap((one) => onConnection(grants, platformId, one, defaultConnection) ?? []);
}

/** A grant that names no connection goes before one that names the default one. */
function onDefault(grants: readonly Grant[], platformId: string, defaultConnection: string | null): Grant | undefined {
  const unnamed = onConnection(grants, platformId, null, null);
  if (unnamed !== undefined || defaultConnection === null) return unnamed;
  return onConnection(grants, platformId, defaultConnection, defaultConnection);
}

/** A grant that names the connection goes before one that leads to it as the default; of equals the one with the least id. */
function onConnection(
  grants: readonly Grant[],
  platformId: string,
  connection: string | null,
  defaultConnection: string | null,
): Grant | undefined {
  let exact: Grant | undefined;
  let standard: Grant | undefined;
  for (const grant of grants) {
    if (grant.platformId !== platformId) continue;
    if (grant.connectionId === connection) exact = leastId(exact, grant);
    else if (grant.connectionId === null && connection === defaultConnection) standard = leastId(standard, grant);
  }
  return exact ?? standard;
}

function leastId(a: Grant | undefined, b: Grant): Grant {
  return a === undefined || b.id < a.id ? b : a;
}

/** The connections that grants on a platform name, each once, sorted. */
function namedConnections(grants: readonly Grant[], platformId: string): string[] {
  const named = grants.flatMap((one) => (one.platformId === platformId ? (one.connectionId ?? []) : []));
  return [...new Set(named)].sort();
}

function intersect(a: Constraints, b: Constraints): Constraints {
  const recipients = both(a.recipients, b.recipients, intersectRecipients);
  const repos = both(a.repos, b.repos, intersectRepositories);
  const refs = both(a.refs, b.refs, intersectRefs);
  const changes = both(a.ref_changes, b.ref_changes, (one, other) => one.filter((each) => other.includes(each)));
  return {
    ...(recipients && { recipients }),
    ...(repos && { repos }),
    ...(refs && { refs }),
    ...(changes && { ref_changes: changes }),
    // Absent is off (specification, Repository constraint).
    ...(a.allow_repo_creation === true && b.allow_repo_creation === true && { allow_repo_creation: true }),
  };
}

function both<T>(a: T | undefined, b: T | undefined, meet: (a: T, b: T) => T): T | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : meet(a, b);
}
