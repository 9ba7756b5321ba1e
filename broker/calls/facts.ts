/** From the rows that authentication read to the facts that a decision takes. */
import type { Broker } from '../broker.ts';
import { breakerFacts } from '../decision/breaker.ts';
import type { AgentFacts, BreakerFacts, Facts, Grant, Instant, ParentFacts } from '../decision/facts.ts';
import { type FactsRow, findGrantsOn } from '../store/facts.ts';
import type { GrantTable } from '../store/schema.ts';
import type { Compiled, CompiledPlatform } from './compiled.ts';

/** The connection that a grant leads to. */
export type ConnectionFacts = {
  id: string;
  label: string;
  status: 'active' | 'reauth_needed';
  credential: Uint8Array | null;
  /** What the upstream granted; null when it does not say. */
  upstreamScopes: readonly string[] | null;
};

export type LoadedFacts = {
  facts: Facts;
  platform: CompiledPlatform | undefined;
  /** By grant id. */
  connections: ReadonlyMap<string, ConnectionFacts>;
};

/** A stored grant as a decision takes it. */
export function grantOf(row: GrantTable): Grant {
  return {
    id: row.id,
    platformId: row.platform_id,
    connectionId: row.connection_id,
    scopes: JSON.parse(row.scopes),
    constraints: JSON.parse(row.constraints),
    requireApproval: row.require_approval === 1,
    expiresAt: row.expires_at,
  };
}

function grantOfFacts(row: FactsRow): Grant {
  return {
    id: row.grant_id!,
    platformId: row.platform_id ?? '',
    connectionId: row.grant_connection_id,
    scopes: JSON.parse(row.grant_scopes!),
    constraints: JSON.parse(row.grant_constraints!),
    requireApproval: row.grant_require_approval === 1,
    expiresAt: row.grant_expires_at,
  };
}

/** The connection of a row: the one that its grant names, or the platform's default one. */
export function connectionOf(row: FactsRow): ConnectionFacts | undefined {
  if (row.connection_id === null || row.connection_status === null) return undefined;
  return {
    id: row.connection_id,
    label: row.connection_label ?? '',
    status: row.connection_status,
    credential: row.connection_credential,
    upstreamScopes: row.connection_upstream_scopes === null ? null : JSON.parse(row.connection_upstream_scopes),
  };
}

const BREAKER_COLUMNS = [
  { cause: 'breaker_auth_failure', prefix: 'auth' },
  { cause: 'breaker_api_error', prefix: 'api' },
  { cause: 'breaker_upstream_failure', prefix: 'upstream' },
] as const;

/** The breakers of the row that are not closed. */
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
    if (facts) found.push(facts);
  }
  return found;
}

/** The agent part of the facts; `parent` when it is a child. */
export function agentFacts(row: FactsRow, parent?: ParentFacts): AgentFacts {
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
    ...(parent && { parent }),
  };
}

async function parentOf(broker: Broker, row: FactsRow, platformId: string): Promise<ParentFacts | undefined> {
  if (row.parent_id === null) return undefined;
  const grants = await findGrantsOn(broker.store, row.organisation_id, row.parent_id, platformId);
  return {
    agentId: row.parent_agent_id ?? '',
    // A parent that is not there any more is one that was revoked.
    status: row.parent_status ?? 'revoked',
    expiresAt: row.parent_expires_at,
    grants: grants.map(grantOf),
  };
}

export type FactsLoader = (rows: readonly FactsRow[], platformId: string, now: Instant) => Promise<LoadedFacts>;

/**
 * A loader of everything that a decision about a platform looks at. It waits for the store only for what is new to this
 * process. The last result is kept by the rows themselves, which are the same ones only as long as nothing has changed.
 */
export function factsLoader(broker: Broker, compiled: Compiled): FactsLoader {
  const kept = new WeakMap<readonly FactsRow[], LoadedFacts>();
  return async (rows, platformId, now) => {
    const found = kept.get(rows);
    if (found) return found;
    const loaded = await loadFacts(broker, compiled, rows, platformId, now);
    if (isSteady(rows)) kept.set(rows, loaded);
    return loaded;
  };
}

/** Whether nothing but these rows matters: neither a parent's grants nor, with a breaker, the moment. */
export function isSteady(rows: readonly FactsRow[]): boolean {
  const { parent_id, auth_open_until, api_open_until } = rows[0]!;
  if (parent_id !== null || auth_open_until !== null || api_open_until !== null) return false;
  return rows.every((row) => row.upstream_open_until === null);
}

async function loadFacts(
  broker: Broker,
  compiled: Compiled,
  rows: readonly FactsRow[],
  platformId: string,
  now: Instant,
): Promise<LoadedFacts> {
  const row = rows[0]!;
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
  const parent = await parentOf(broker, row, platformId);
  const grants: Grant[] = [];
  const connections = new Map<string, ConnectionFacts>();
  for (const each of rows) {
    if (each.grant_id === null) continue;
    const grant = grantOfFacts(each);
    grants.push(grant);
    const connection = connectionOf(each);
    if (connection) connections.set(grant.id, connection);
  }
  return {
    facts: {
      agent: agentFacts(row, parent),
      ...(platform && {
        platform: {
          platformId: row.platform_id!,
          name: platform.manifest.name ?? row.platform_id!,
          suspended: row.platform_suspended === 1,
          defaultConnectionId: row.default_connection_id,
          rules: platform.rules,
        },
      }),
      grants,
      ...(policy && { policy }),
      guardrails,
      breakers: breakersOf(row, now),
    },
    platform,
    connections,
  };
}
