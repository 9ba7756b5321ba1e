/** Selects the grant that an ask uses, and narrows a child's grant to its parent's (specification, Child identity). */
import type { Ask, Constraints, Facts, Grant, Instant } from './facts.ts';
import { intersectRecipients } from './recipients.ts';
import { intersectRefs } from './refs/patterns.ts';
import { intersectRepositories } from './repos.ts';

/**
 * Returns the grant that an ask uses; undefined when there is none (see `selectGrant`). A child's grant is narrowed to what its parent's grant on the same
 * connection allows now; when the parent has none, no scope is left.
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

/** Returns what both grants allow. Also used when a child is created: it gets at most `attenuate(requested, parent's)`. */
export function attenuate(child: Grant, parent: Grant): Grant {
  return {
    ...child,
    scopes: child.scopes.filter((scope) => parent.scopes.includes(scope)),
    constraints: intersect(child.constraints, parent.constraints),
    requireApproval: child.requireApproval || parent.requireApproval,
    expiresAt: earliest(child.expiresAt, parent.expiresAt),
  };
}

/** Returns the earlier of two instants; null means "never". */
export function earliest(a: Instant | null, b: Instant | null): Instant | null {
  if (a === null) return b;
  return b === null ? a : Math.min(a, b);
}

/**
 * Selects, independently of their order, which of an agent's own grants an ask uses. When the ask names a connection: the grant on it. Otherwise: the grant
 * on the default connection, or else the only grant. Undefined when several grants would fit: which stored account a call uses is never a guess (see
 * `connectionChoices`).
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
 * Returns the grants, one per connection and sorted by connection, among which an ask must choose by naming a connection: the ask names none, and the agent
 * has grants on several connections and none on the default. Empty when there is nothing to choose.
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

/** A grant that names no connection takes precedence over one that names the default connection. */
function onDefault(grants: readonly Grant[], platformId: string, defaultConnection: string | null): Grant | undefined {
  const unnamed = onConnection(grants, platformId, null, null);
  if (unnamed !== undefined || defaultConnection === null) return unnamed;
  return onConnection(grants, platformId, defaultConnection, defaultConnection);
}

/** A grant that names the connection takes precedence over one that uses it as the default; among equals, the grant with the least id is used. */
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

/** Returns the distinct connections named by grants on a platform, sorted. */
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
    // Absent means off (specification, Repository constraint).
    ...(a.allow_repo_creation === true && b.allow_repo_creation === true && { allow_repo_creation: true }),
  };
}

function both<T>(a: T | undefined, b: T | undefined, meet: (a: T, b: T) => T): T | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : meet(a, b);
}
