/** The columns of a facts query: what the statements select, in which order, and thus the type of a row. */
import type { AgentTable, BreakerTable } from './tables/agents.ts';
import type { ConnectionTable } from './tables/connections.ts';
import type { OrganisationTable } from './tables/organisations.ts';
import type { PlatformTable } from './tables/platforms.ts';
import type { GrantTable, PolicyTable } from './tables/rules.ts';

/** Aliases of the tables in the statements. Columns of outer-joined tables may be null. */
type Tables = {
  a: AgentTable;
  o: OrganisationTable;
  po: OrEmpty<PolicyTable>;
  pl: OrEmpty<PlatformTable>;
  d: OrEmpty<ConnectionTable>;
  g: OrEmpty<GrantTable>;
  c: OrEmpty<ConnectionTable>;
  ba: OrEmpty<BreakerTable>;
  be: OrEmpty<BreakerTable>;
  bu: OrEmpty<BreakerTable>;
  p: OrEmpty<AgentTable>;
  pg: OrEmpty<GrantTable>;
  pb: OrEmpty<BreakerTable>;
};
type OrEmpty<Table> = { [Column in keyof Table]: Table[Column] | null };

export const SELECTED = [
  'a.organisation_id',
  'o.guardrails_version',
  'o.approval_ttl_ms',
  'o.auto_suspend',
  'o.agents_stopped',
  'o.restored',
  'a.id',
  'a.agent_id',
  'a.name',
  'a.owner_id',
  'a.former_owners',
  'a.labels',
  'a.agent_type',
  'a.status',
  'a.status_since',
  'a.status_cause',
  'a.status_detail',
  'a.created_at',
  'a.expires_at',
  'a.public_key_pem',
  'a.key_fingerprint',
  'a.parent_id',
  'po.id as policy_id',
  'po.name as policy_name',
  'po.version as policy_version',
  'pl.platform_id',
  'pl.version as platform_version',
  'pl.suspended as platform_suspended',
  'd.id as default_connection_id',
  'g.id as grant_id',
  'g.connection_id as grant_connection_id',
  'g.scopes as grant_scopes',
  'g.constraints as grant_constraints',
  'g.require_approval as grant_require_approval',
  'g.expires_at as grant_expires_at',
  'c.id as connection_id',
  'c.label as connection_label',
  'c.status as connection_status',
  'c.credential as connection_credential',
  'c.upstream_scopes as connection_upstream_scopes',
  'c.idle_ms as connection_idle_ms',
  'c.wait_ms as connection_wait_ms',
  'ba.opened_at as auth_opened_at',
  'ba.open_until as auth_open_until',
  'ba.trial_at as auth_trial_at',
  'be.opened_at as api_opened_at',
  'be.open_until as api_open_until',
  'be.trial_at as api_trial_at',
  'bu.opened_at as upstream_opened_at',
  'bu.open_until as upstream_open_until',
  'bu.trial_at as upstream_trial_at',
] as const;

/** Selected after those; see facts-breakers.ts. */
const COMPUTED = ['all_upstream_until', 'all_upstream_since'] as const;
/** Selected last: ids of the agent's standing approvals on the platform that have not ended, comma-separated; null: none. */
const STANDING = 'standing';

/**
 * For an agent that may be a child, selected after those: its parent, one of the parent's grants on the platform, and one of the parent's
 * breakers that are not closed. The result has a row for each combination of these with the agent's grants.
 */
export const FAMILY_SELECTED = [
  'p.agent_id as parent_agent_id',
  'p.name as parent_name',
  'p.owner_id as parent_owner_id',
  'p.labels as parent_labels',
  'p.status as parent_status',
  'p.expires_at as parent_expires_at',
  'pg.id as parent_grant_id',
  'pg.connection_id as parent_grant_connection_id',
  'pg.scopes as parent_grant_scopes',
  'pg.constraints as parent_grant_constraints',
  'pg.require_approval as parent_grant_require_approval',
  'pg.expires_at as parent_grant_expires_at',
  'pb.cause as parent_breaker_cause',
  'pb.opened_at as parent_breaker_opened_at',
  'pb.open_until as parent_breaker_open_until',
  'pb.trial_at as parent_breaker_trial_at',
] as const;

/** Maps each selected name to the type of its column. */
type Row<Selected extends string> = {
  [Each in Selected as NameOf<Each>]: Each extends `${infer Alias extends keyof Tables & string}.${infer Rest}`
    ? Rest extends `${infer Column extends string} as ${string}`
      ? Tables[Alias][Column & keyof Tables[Alias]]
      : Tables[Alias][Rest & keyof Tables[Alias]]
    : never;
};
type NameOf<Selected extends string> = Selected extends `${string} as ${infer Name}`
  ? Name
  : Selected extends `${string}.${infer Column}`
    ? Column
    : never;

/** One row per grant on the platform; one row with empty grant columns when there is none. */
export type FactsRow = Row<(typeof SELECTED)[number]> &
  Record<(typeof COMPUTED)[number], number | null> &
  Record<typeof STANDING, string | null> &
  Partial<Row<(typeof FAMILY_SELECTED)[number]>>;

/** `own`: an agent without a parent, as in a token that the agent signed itself; `family`: an agent that may be a child. */
export type FactsScope = 'own' | 'family';

const columnsOf = (selected: readonly string[]) =>
  selected.map((column) => column.split(/ as |\./).at(-1)) as readonly (keyof FactsRow)[];

/** The members of a row, in the order of the statement's columns. The version and the query's number follow them. */
export const FACTS_COLUMNS: Readonly<Record<FactsScope, readonly (keyof FactsRow)[]>> = {
  own: columnsOf([...SELECTED, ...COMPUTED, STANDING]),
  family: columnsOf([...SELECTED, ...COMPUTED, STANDING, ...FAMILY_SELECTED]),
};
