/**
 * Everything about one agent, and about one platform that it asks for, in one statement, with the version of it all: who
 * keeps an answer asks for the version before each use, so revocation shows at the very next decision on every replica.
 * Policies, guardrails and manifests come as versions of their own.
 */
import { type Kysely, sql } from 'kysely';
import type { AgentStatus, HaltCause } from '../policy/facts.ts';
import { addressOf, allUpstreamSince, allUpstreamUntil } from './facts-breakers.ts';
import { FAMILY_SELECTED, type FamilyFacts, keyOfBreaker, POLICY_OF_FAMILY } from './facts-family.ts';
import type { Bit, Schema } from './schema.ts';
import { prepare } from './store.ts';

/** One row a grant on the platform; one row with empty grant columns when there is none. */
export type FactsRow = {
  organisation_id: string;
  guardrails_version: number;
  approval_ttl_ms: number;
  auto_suspend: string | null;
  id: string;
  agent_id: string;
  name: string;
  owner_id: string;
  agent_type: string | null;
  status: AgentStatus;
  status_since: number | null;
  status_cause: HaltCause | null;
  status_detail: string | null;
  created_at: number;
  expires_at: number | null;
  public_key_pem: string | null;
  key_fingerprint: string | null;
  parent_id: string | null;
  policy_id: string | null;
  policy_name: string | null;
  policy_version: number | null;
  platform_id: string | null;
  platform_version: number | null;
  platform_suspended: Bit | null;
  default_connection_id: string | null;
  grant_id: string | null;
  grant_connection_id: string | null;
  grant_scopes: string | null;
  grant_constraints: string | null;
  grant_require_approval: Bit | null;
  grant_expires_at: number | null;
  connection_id: string | null;
  connection_label: string | null;
  connection_status: 'active' | 'reauth_needed' | null;
  connection_credential: Uint8Array | null;
  connection_upstream_scopes: string | null;
  auth_opened_at: number | null;
  auth_open_until: number | null;
  auth_trial_at: number | null;
  api_opened_at: number | null;
  api_open_until: number | null;
  api_trial_at: number | null;
  upstream_opened_at: number | null;
  upstream_open_until: number | null;
  upstream_trial_at: number | null;
  /** See facts-breakers.ts. */
  all_upstream_until: number | null;
  all_upstream_since: number | null;
} & Partial<FamilyFacts>;

/** Table and column of each member of a row, in its order. */
const SELECTED = [
  'a.organisation_id',
  'o.guardrails_version',
  'o.approval_ttl_ms',
  'o.auto_suspend',
  'a.id',
  'a.agent_id',
  'a.name',
  'a.owner_id',
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
/** After those. */
const COMPUTED = ['all_upstream_until', 'all_upstream_since'] as const;

/** `alone`: an agent that has no parent, which is all that a token signed by the agent itself can be of. */
export type Whose = 'alone' | 'family';

const columnsOf = (selected: readonly string[]) =>
  selected.map((column) => column.split(/ as |\./).at(-1)) as readonly (keyof FactsRow)[];

/** The members of a row, in the order of the statement's columns. After them come the version and the question's number. */
export const FACTS_COLUMNS: Readonly<Record<Whose, readonly (keyof FactsRow)[]>> = {
  alone: columnsOf([...SELECTED, ...COMPUTED]),
  family: columnsOf([...SELECTED, ...COMPUTED, ...FAMILY_SELECTED]),
};

// biome-ignore lint/suspicious/noExplicitAny: Kysely's join builders are typed by the tables joined so far.
const onOrganisation = (join: any, alias: string) => join.onRef(`${alias}.organisation_id`, '=', 'a.organisation_id');

/** What is asked, and from which address, or ANY_ADDRESS; the number is the statement's own. */
export type Question = { agent: string; platform: string; source: string; n: number };

/** Who asks, about which platform, from where; many at once, as arrays that PostgreSQL numbers from 1. */
const questions = (slot: (name: string) => unknown, many: boolean) =>
  many
    ? sql<Question>`unnest(${slot('agent')}::text[], ${slot('platform')}::text[], ${slot('source')}::text[]) with ordinality`.as<'q'>(
        sql`q(agent, platform, source, n)`,
      )
    : sql<Question>`(select cast(${slot('agent')} as text) as agent, cast(${slot('platform')} as text) as platform,
        cast(${slot('source')} as text) as source, 1 as n)`.as('q');

/**
 * The statement for one platform a question, or for all platforms on which the agent has grants. The first one tells of
 * the platform also when there is no grant on it. Only the statement for a family looks for a parent, so that children cost
 * nothing where there are none.
 */
export const prepareFacts = (
  db: Kysely<Schema>,
  which: 'one_platform' | 'all_platforms',
  { many, whose }: { many: boolean; whose: Whose },
) =>
  prepare(`facts_${which}_${whose}${many ? '_many' : ''}`, (slot) => {
    const one = which === 'one_platform';
    const family = whose === 'family';
    const platform = () => sql.ref(one ? 'q.platform' : 'g.platform_id');
    return (
      db
        .selectFrom(questions(slot, many))
        .innerJoin('agents as a', 'a.agent_id', 'q.agent')
        .innerJoin('organisations as o', 'o.id', 'a.organisation_id')
        .leftJoin('fact_versions as v', 'v.organisation_id', 'a.organisation_id')
        .$if(family, (query) =>
          query.leftJoin('agents as p', (j) => onOrganisation(j, 'p').onRef('p.id', '=', 'a.parent_id')),
        )
        .leftJoin('policies as po', (j) =>
          onOrganisation(j, 'po').on('po.id', '=', family ? POLICY_OF_FAMILY : sql.ref('a.policy_id')),
        )
        .leftJoin('grants as g', (j) => {
          const ofAgent = onOrganisation(j, 'g').onRef('g.agent_id', '=', 'a.id');
          return one ? ofAgent.onRef('g.platform_id', '=', 'q.platform') : ofAgent;
        })
        .leftJoin('platforms as pl', (j) => onOrganisation(j, 'pl').on('pl.platform_id', '=', platform()))
        .leftJoin('connections as d', (j) =>
          onOrganisation(j, 'd').on('d.platform_id', '=', platform()).on('d.is_default', '=', 1),
        )
        .leftJoin('connections as c', (j) =>
          onOrganisation(j, 'c').on('c.platform_id', '=', platform()).on(sql`c.id = coalesce(g.connection_id, d.id)`),
        )
        .leftJoin('breakers as ba', (j) =>
          onOrganisation(j, 'ba')
            .onRef('ba.agent_id', '=', 'a.id')
            .on('ba.cause', '=', 'breaker_auth_failure')
            .on('ba.key', '=', addressOf('a.id')),
        )
        .leftJoin('breakers as be', (j) =>
          onOrganisation(j, 'be')
            .onRef('be.agent_id', '=', 'a.id')
            .on('be.cause', '=', 'breaker_api_error')
            .on('be.key', '=', ''),
        )
        .leftJoin('breakers as bu', (j) =>
          onOrganisation(j, 'bu')
            .onRef('bu.agent_id', '=', 'a.id')
            .on('bu.cause', '=', 'breaker_upstream_failure')
            .on('bu.key', '=', platform()),
        )
        .$if(family, (query) =>
          query
            .leftJoin('grants as pg', (j) =>
              onOrganisation(j, 'pg').onRef('pg.agent_id', '=', 'a.parent_id').on('pg.platform_id', '=', platform()),
            )
            .leftJoin('breakers as pb', (j) =>
              onOrganisation(j, 'pb')
                .onRef('pb.agent_id', '=', 'a.parent_id')
                .on('pb.open_until', 'is not', null)
                .on('pb.key', '=', keyOfBreaker(platform())),
            ),
        )
        .select(SELECTED)
        .select([allUpstreamUntil.as('all_upstream_until'), allUpstreamSince.as('all_upstream_since')])
        // Kysely does not know of the tables that are joined in one case only.
        .$if(family, (query) => query.select(FAMILY_SELECTED as never))
        .select(['v.version', 'q.n'])
    );
  });

/** The versions of the facts about organisations: one, or on PostgreSQL several by their ids. */
export const prepareFactVersions = (db: Kysely<Schema>, { many }: { many: boolean }) =>
  prepare(many ? 'fact_versions' : 'fact_version', (slot) => {
    const versions = db.selectFrom('fact_versions').select(['organisation_id', 'version']);
    return many
      ? versions.where(sql<boolean>`organisation_id = any(${slot('organisations')}::text[])`)
      : versions.where('organisation_id', '=', slot('organisation'));
  });

/** Asks for every platform on which the agent has grants, instead of one. */
export const ALL_PLATFORMS = '*';
