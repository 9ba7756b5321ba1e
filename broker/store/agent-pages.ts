/** Pages of an organisation's agents: filtered by words and other properties, in an order that the owner chooses. */
import { type RawBuilder, sql } from 'kysely';
import type { AgentStatus } from '../policy/facts.ts';
import { likesOf } from './agent-names.ts';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';

export type AgentFilter = {
  /** Each has to occur in the name, the id, the owner's address, the policy's name or the labels. */
  words?: readonly string[] | undefined;
  status?: AgentStatus | undefined;
  /** The owner's uuid. */
  owner?: string | undefined;
  /** The policy's uuid. */
  policy?: string | undefined;
  /** One of its labels. */
  label?: string | undefined;
  /** The parent's uuid. */
  parent?: string | undefined;
};

/** Sorts by name, with revoked agents last. Migration 0048 has an index on exactly this expression. */
const BY_NAME = sql<string>`(case when a.status = 'revoked' then '1' else '0' end) || lower(a.name)`;

const ORDERS = ['name', 'owner', 'policy', 'status', 'created', 'last_call'] as const;

/** The sort key of each order, as a single value. An audit row's id sorts by time (UUIDv7). */
const KEYS: Record<(typeof ORDERS)[number], RawBuilder<string | number>> = {
  name: BY_NAME,
  owner: sql<string>`coalesce(o.email, '') || ' ' || lower(a.name)`,
  policy: sql<string>`coalesce(lower(po.name), '') || ' ' || lower(a.name)`,
  status: sql<string>`a.status || ' ' || lower(a.name)`,
  created: sql<number>`a.created_at`,
  last_call: sql<string>`coalesce((select r.id from audit_rows r where r.organisation_id = a.organisation_id
    and r.agent_id = a.id and r.kind = 'action' order by r.id desc limit 1), '')`,
};
export type AgentOrder = (typeof ORDERS)[number];
export const AGENT_ORDERS: readonly AgentOrder[] = ORDERS;
/** Orders with an index. For the others, all matching agents are read and sorted. */
export const INDEXED_ORDERS: ReadonlySet<AgentOrder> = new Set(['name', 'created']);

/** End of a page: sort key and uuid of its last agent. */
export type AgentCursor = { key: string | number; id: string };

export type AgentPage = {
  filter: AgentFilter;
  order: AgentOrder;
  descending: boolean;
  after?: AgentCursor | undefined;
  limit: number;
  /** Children that had expired by this time are omitted. */
  endedBy: number;
};

/** Returns the agents of a page and its end; null: it is the last page. */
export async function pageOfAgents(
  db: Db,
  organisationId: string,
  { filter, order, descending, after, limit, endedBy }: AgentPage,
): Promise<{ agents: AgentTable[]; end: AgentCursor | null }> {
  const direction = descending ? 'desc' : 'asc';
  let query = shown(db, organisationId, filter, endedBy).selectAll('a').select(KEYS[order].as('order_key'));
  if (after) {
    const beyond = sql.raw(descending ? '<' : '>');
    query = query.where(sql<boolean>`(${KEYS[order]}, a.id) ${beyond} (${after.key}, ${after.id})`);
  }
  const found = await query
    .orderBy(KEYS[order], direction)
    .orderBy('a.id', direction)
    .limit(limit + 1)
    .execute();
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    agents: page.map(({ order_key: _key, ...agent }) => agent),
    end: found.length > limit && last ? { key: last.order_key, id: last.id } : null,
  };
}

/** Limit of the total count. */
export const MAX_AGENTS_COUNTED = 10_000;

/** Counts the agents on all pages, up to MAX_AGENTS_COUNTED. */
export async function countAgents(
  db: Db,
  organisationId: string,
  { filter, endedBy }: Pick<AgentPage, 'filter' | 'endedBy'>,
): Promise<number> {
  const { count } = await db
    .selectFrom(shown(db, organisationId, filter, endedBy).select('a.id').limit(MAX_AGENTS_COUNTED).as('some'))
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Returns these agents of an organisation by their uuids, deleted ones included. */
export async function findAgents(db: Db, organisationId: string, ids: readonly string[]): Promise<AgentTable[]> {
  if (ids.length === 0) return [];
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', ids)
    .execute();
}

const escaped = (text: string) => text.replaceAll(/[\\%_]/g, '\\$&');

function shown(db: Db, organisationId: string, filter: AgentFilter, endedBy: number) {
  const { words = [], status, owner, policy, label, parent } = filter;
  let query = db
    .selectFrom('agents as a')
    .leftJoin('owners as o', (j) =>
      j.onRef('o.organisation_id', '=', 'a.organisation_id').onRef('o.id', '=', 'a.owner_id'),
    )
    .leftJoin('policies as po', (j) =>
      j.onRef('po.organisation_id', '=', 'a.organisation_id').onRef('po.id', '=', 'a.policy_id'),
    )
    .where('a.organisation_id', '=', organisationId)
    .where('a.status', '!=', 'deleted')
    .where((eb) => eb.or([eb('a.parent_id', 'is', null), eb('a.expires_at', '>', endedBy)]));
  for (const word of words)
    query = query.where((eb) =>
      eb.or(
        likesOf(word).map(
          (like) =>
            sql<boolean>`lower(a.name || ' ' || a.agent_id || ' ' || coalesce(o.email, '') || ' ' || coalesce(po.name, '') || ' ' || coalesce(a.labels, ''))
              like lower(${like}) escape '\\'`,
        ),
      ),
    );
  if (status !== undefined) query = query.where('a.status', '=', status);
  if (owner !== undefined) query = query.where('a.owner_id', '=', owner);
  if (policy !== undefined) query = query.where('a.policy_id', '=', policy);
  if (label !== undefined)
    query = query.where(sql<boolean>`a.labels like ${`%${escaped(JSON.stringify(label))}%`} escape '\\'`);
  if (parent !== undefined) query = query.where('a.parent_id', '=', parent);
  return query;
}
