/**
 * The facts of one agent and one platform in one query, with their version: a cached result is used only after reading the
 * current version, so that a revocation is effective at the next decision on every replica. Policies, guardrails and manifests
 * are referenced by their own versions.
 */
import { type Kysely, sql } from 'kysely';
import { addressOf, allUpstreamSince, allUpstreamUntil } from './facts-breakers.ts';
import { FAMILY_SELECTED, type FactsScope, SELECTED } from './facts-columns.ts';
import type { Schema } from './schema.ts';
import { prepare } from './store.ts';

// biome-ignore lint/suspicious/noExplicitAny: Kysely's join builders are typed by the tables joined so far.
const onOrganisation = (join: any, alias: string) => join.onRef(`${alias}.organisation_id`, '=', 'a.organisation_id');

/**
 * Parameters of a query, with the source address or ANY_ADDRESS; `n` is assigned by the statement. `platform`: for `of_connection`, the
 * label or id of the connection.
 */
export type Question = { agent: string; platform: string; source: string; n: number };

/** Matches the connection with that `name`; a label takes precedence over an id, since it may look like the id of another connection. */
const isNamed = (
  name: unknown,
) => sql<boolean>`w.id = (select x.id from connections as x where x.organisation_id = a.organisation_id
  and (x.label = ${name} or x.id = ${name}) order by case when x.label = ${name} then 0 else 1 end limit 1)`;

/** The parameters as a derived table; many as arrays, numbered from 1 by PostgreSQL. */
const questions = (slot: (name: string) => unknown, many: boolean) =>
  many
    ? sql<Question>`unnest(${slot('agent')}::text[], ${slot('platform')}::text[], ${slot('source')}::text[]) with ordinality`.as<'q'>(
        sql`q(agent, platform, source, n)`,
      )
    : sql<Question>`(select cast(${slot('agent')} as text) as agent, cast(${slot('platform')} as text) as platform,
        cast(${slot('source')} as text) as source, 1 as n)`.as('q');

const PLATFORM_IN = {
  one_platform: 'q.platform',
  of_connection: 'w.platform_id',
  all_platforms: 'g.platform_id',
} as const;

/** Their terms never change, so their ids are sufficient as facts; ended ones are excluded. */
const standingOn = (platform: unknown) =>
  sql<string | null>`(select string_agg(s.id, ',' order by s.id) from standing_approvals as s
    where s.organisation_id = a.organisation_id and s.agent_id = a.id and s.platform_id = ${platform} and s.ended_at is null)`;

/**
 * The statement for one platform, for the platform of one connection, or for all platforms on which the agent has grants. The first two
 * return the platform also when there is no grant on it. Only the statement for `family` joins the parent, so that calls of agents without
 * a parent do not pay for children.
 */
export const prepareFacts = (
  db: Kysely<Schema>,
  which: 'one_platform' | 'of_connection' | 'all_platforms',
  { many, scope }: { many: boolean; scope: FactsScope },
) =>
  prepare(`facts_${which}_${scope}${many ? '_many' : ''}`, (slot) => {
    const family = scope === 'family';
    const platform = () => sql.ref(PLATFORM_IN[which]);
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
        .$if(which === 'of_connection', (query) =>
          query.leftJoin('connections as w', (j) =>
            // SQLite 3.49, which Node 24.0 has, does not resolve columns of `q` here.
            onOrganisation(j, 'w').on(isNamed(many ? sql.ref('q.platform') : slot('platform'))),
          ),
        )
        .leftJoin('grants as g', (j) => {
          const ofAgent = onOrganisation(j, 'g').onRef('g.agent_id', '=', 'a.id');
          return which === 'all_platforms' ? ofAgent : ofAgent.on('g.platform_id', '=', platform());
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
        .select(standingOn(platform()).as('standing'))
        // Kysely's types do not cover conditionally joined tables.
        .$if(family, (query) => query.select(FAMILY_SELECTED as never))
        .select(['v.version', 'q.n'])
    );
  });

/** The statement for the fact version of one organisation, or on PostgreSQL of several. */
export const prepareFactVersions = (db: Kysely<Schema>, { many }: { many: boolean }) =>
  prepare(many ? 'fact_versions' : 'fact_version', (slot) => {
    const versions = db.selectFrom('fact_versions').select(['organisation_id', 'version']);
    return many
      ? versions.where(sql<boolean>`organisation_id = any(${slot('organisations')}::text[])`)
      : versions.where('organisation_id', '=', slot('organisation'));
  });

/** A child uses its parent's current policy. */
const POLICY_OF_FAMILY = sql`case when a.parent_id is null then a.policy_id else p.policy_id end`;

/** The key under which a breaker of this cause counts. */
const keyOfBreaker = (platform: unknown) =>
  sql`case pb.cause when 'breaker_auth_failure' then ${addressOf('a.parent_id')} when 'breaker_upstream_failure' then ${platform} else '' end`;
