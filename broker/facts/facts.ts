/** Converts the rows that authentication loaded to the facts of a decision. */

import { breakerFacts } from '../policy/breaker.ts';
import type { AgentFacts, BreakerFacts, Facts, Grant, Instant, ParentFacts } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import { readConstraints, readLabels, readScopes } from '../store/stored-terms.ts';
import type { GrantTable } from '../store/tables/rules.ts';
import type { Compiled, CompiledPlatform } from './compiled.ts';
import { type ConnectionFacts, connectionOf } from './connection-facts.ts';

export type LoadedFacts = {
  facts: Facts;
  platform: CompiledPlatform | undefined;
  /** By grant id. */
  connections: ReadonlyMap<string, ConnectionFacts>;
};

/** Converts a stored grant. */
export function grantOf(row: GrantTable): Grant {
  return {
    id: row.id,
    platformId: row.platform_id,
    connectionId: row.connection_id,
    scopes: readScopes(row.scopes, row.id),
    constraints: readConstraints(row.constraints, row.id),
    requireApproval: row.require_approval === 1,
    expiresAt: row.expires_at,
  };
}

/** Converts the grant of a row. The row must have one. */
export function grantOfFacts(row: FactsRow): Grant {
  const [connection, id] = [connectionOf(row), present(row.grant_id, 'grant')];
  return {
    id,
    platformId: row.platform_id ?? '',
    connectionId: row.grant_connection_id,
    ...(connection && {
      connection: {
        label: connection.label,
        status: connection.credential === null ? 'not_connected' : connection.status,
      },
    }),
    scopes: readScopes(present(row.grant_scopes, 'scopes'), id),
    constraints: readConstraints(present(row.grant_constraints, 'constraints'), id),
    requireApproval: row.grant_require_approval === 1,
    expiresAt: row.grant_expires_at,
  };
}

const BREAKER_COLUMNS = [
  { cause: 'breaker_auth_failure', prefix: 'auth' },
  { cause: 'breaker_api_error', prefix: 'api' },
  { cause: 'breaker_upstream_failure', prefix: 'upstream' },
] as const;

/** Returns the breakers of a row that are not closed: those that halt the agent, and that of the row's platform. */
export function breakersOf(row: FactsRow, now: Instant): BreakerFacts[] {
  const found: BreakerFacts[] = [];
  for (const { cause, prefix } of BREAKER_COLUMNS) {
    const openUntil = row[`${prefix}_open_until`];
    if (openUntil === null) continue;
    const state = {
      strikes: 0,
      windowStart: 0,
      openedAt: row[`${prefix}_opened_at`],
      openUntil,
      trialAt: row[`${prefix}_trial_at`],
    };
    const facts = breakerFacts(state, cause, now);
    if (facts) found.push(cause === 'breaker_upstream_failure' ? ofPlatform(facts, row.platform_id ?? '') : facts);
  }
  const { all_upstream_until: openUntil, all_upstream_since: openedAt } = row;
  if (openUntil !== null && openUntil > now && openedAt !== null)
    found.push({ cause: 'breaker_upstream_failure', openedAt, openUntil, trialUntil: null });
  return found;
}

const ofPlatform = (breaker: BreakerFacts, platformId: string): BreakerFacts => ({ ...breaker, platformId });

const NO_LABELS: readonly string[] = Object.freeze([]);

/** Returns the agent part of the facts; `parent` for a child. */
export function agentFacts(row: FactsRow, parent?: ParentFacts): AgentFacts {
  // A child has the labels of its parent, so that it is not exempt from rules about them.
  const labels = row.parent_id === null ? row.labels : (row.parent_labels ?? null);
  return {
    id: row.id,
    agentId: row.agent_id,
    name: row.name,
    ownerId: row.owner_id,
    organisationId: row.organisation_id,
    status: row.status,
    statusSince: row.status_since,
    statusCause: row.status_cause,
    statusDetail: row.status_detail,
    expiresAt: row.expires_at,
    labels: labels === null ? NO_LABELS : readLabels(labels, row.parent_id ?? row.id),
    ...(parent && { parent }),
  };
}

/** Whether an agent has no parent, or an active one. */
export function hasStandingParent({ parent_id, parent_status, parent_expires_at }: FactsRow, now: Instant): boolean {
  if (parent_id === null) return true;
  return parent_status === 'active' && (parent_expires_at == null || parent_expires_at > now);
}

/** Returns the parent of a child; undefined for other agents. */
function parentOf(rows: readonly FactsRow[], now: Instant): ParentFacts | undefined {
  const row = present(rows[0], 'agent');
  if (row.parent_id === null) return undefined;
  const grants = new Map<string, Grant>();
  const breakers = new Map<BreakerFacts['cause'], BreakerFacts>();
  for (const each of rows) {
    if (each.parent_grant_id && !grants.has(each.parent_grant_id))
      grants.set(each.parent_grant_id, grantOfParent(each));
    const breaker = breakerOfParent(each, now);
    if (breaker) breakers.set(breaker.cause, breaker);
  }
  return {
    id: row.parent_id,
    agentId: row.parent_agent_id ?? '',
    name: row.parent_name ?? '',
    ownerId: row.parent_owner_id ?? '',
    // A deleted parent counts as revoked.
    status: row.parent_status ?? 'revoked',
    expiresAt: row.parent_expires_at ?? null,
    grants: [...grants.values()],
    breakers: [...breakers.values()],
  };
}

function grantOfParent(row: FactsRow): Grant {
  return {
    id: present(row.parent_grant_id, 'grant'),
    platformId: row.platform_id ?? '',
    connectionId: row.parent_grant_connection_id ?? null,
    scopes: readScopes(present(row.parent_grant_scopes, 'scopes'), row.parent_grant_id ?? ''),
    constraints: readConstraints(present(row.parent_grant_constraints, 'constraints'), row.parent_grant_id ?? ''),
    requireApproval: row.parent_grant_require_approval === 1,
    expiresAt: row.parent_grant_expires_at ?? null,
  };
}

function breakerOfParent(row: FactsRow, now: Instant): BreakerFacts | undefined {
  const { parent_breaker_cause: cause, parent_breaker_open_until: openUntil } = row;
  if (!cause || !openUntil) return undefined;
  const [openedAt, trialAt] = [row.parent_breaker_opened_at ?? null, row.parent_breaker_trial_at ?? null];
  const breaker = breakerFacts({ strikes: 0, windowStart: 0, openedAt, openUntil, trialAt }, cause, now);
  return breaker && cause === 'breaker_upstream_failure' ? ofPlatform(breaker, row.platform_id ?? '') : breaker;
}

/** `rows`: the facts about an agent and one platform, or about no platform. */
export type FactsLoader = (rows: readonly FactsRow[], now: Instant) => Promise<LoadedFacts>;

/**
 * Returns a loader of the facts that a decision about a platform needs. It waits for the store only for versions that are not cached in this process. The
 * last result is cached by the identity of the rows, which are the same array only as long as nothing has changed; so it must depend on nothing else but
 * the time.
 */
export function factsLoader(compiled: Compiled): FactsLoader {
  const kept = new WeakMap<readonly FactsRow[], LoadedFacts>();
  return async (rows, now) => {
    const found = kept.get(rows);
    if (found) return found;
    const loaded = await loadFacts(compiled, rows, now);
    if (isSteady(rows)) kept.set(rows, loaded);
    return loaded;
  };
}

/** Whether the facts depend on these rows only, and not on the time, as they do with a breaker. */
export function isSteady(rows: readonly FactsRow[]): boolean {
  const { auth_open_until, api_open_until, all_upstream_until } = present(rows[0], 'agent');
  if (auth_open_until !== null || api_open_until !== null || all_upstream_until) return false;
  return rows.every((row) => row.upstream_open_until === null && !row.parent_breaker_open_until);
}

async function loadFacts(compiled: Compiled, rows: readonly FactsRow[], now: Instant): Promise<LoadedFacts> {
  const row = present(rows[0], 'agent');
  const organisation = row.organisation_id;
  const platform =
    row.platform_id === null || row.platform_version === null
      ? undefined
      : await compiled.platform(organisation, row.platform_id, row.platform_version);
  const policy =
    row.policy_id === null || row.policy_version === null
      ? undefined
      : await compiled.policy(organisation, row.policy_id, row.policy_name ?? '', row.policy_version);
  const guardrails = await compiled.guardrails(organisation, row.guardrails_version);
  const parent = parentOf(rows, now);
  const standing = row.standing === null ? undefined : await compiled.standing(organisation, row.standing.split(','));
  const grants = new Map<string, Grant>();
  const connections = new Map<string, ConnectionFacts>();
  for (const each of rows) {
    // In a family, each grant occurs once with each grant of the parent.
    if (each.grant_id === null || grants.has(each.grant_id)) continue;
    const grant = grantOfFacts(each);
    grants.set(grant.id, grant);
    const connection = connectionOf(each);
    if (connection) connections.set(grant.id, connection);
  }
  return {
    facts: {
      agent: agentFacts(row, parent),
      ...(platform && {
        platform: {
          platformId: row.platform_id ?? '',
          name: platform.manifest.name ?? row.platform_id ?? '',
          version: row.platform_version ?? 0,
          suspended: row.platform_suspended === 1,
          defaultConnectionId: row.default_connection_id,
          rules: platform.rules,
          ...(platform.manifest.per_person?.enabled && { perPerson: true as const }),
        },
      }),
      grants: [...grants.values()],
      ...(policy && { policy }),
      guardrails,
      breakers: breakersOf(row, now),
      ...(standing && { standing }),
    },
    platform,
    connections,
  };
}
