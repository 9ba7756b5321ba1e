/** An organisation's agents a page at a time: found by words and filters, in the order that an owner chooses. */
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

/** In the alphabet the revoked ones stand last. There is an index of just this (migration 0048). */
const BY_NAME = sql<string>`(case when a.status = 'revoked' then '1' else '0' end) || lower(a.name)`;

const ORDERS = ['name', 'owner', 'policy', 'status', 'created', 'last_call'] as const;

/** What agents are ordered by, as one value each. A call's id tells its time (UUIDv7). */
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
/** For the others all agents that are sought are read and sorted. */
export const INDEXED_ORDERS: ReadonlySet<AgentOrder> = new Set(['name', 'created']);

/** Where a page ended: the value that its last agent is ordered by, and its uuid. */
export type AgentCursor = { key: string | number; id: string };

export type AgentPage = {
  filter: AgentFilter;
  order: AgentOrder;
  descending: boolean;
  after?: AgentCursor | undefined;
  limit: number;
  /** Children that had expired by then are left out. */
  endedBy: number;
};

/** The agents of a page, and where it ended; null: it is the last one. */
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

/** More are not counted. */
export const MOST_AGENTS_COUNTED = 10_000;

/** How many there are on all pages, MOST_AGENTS_COUNTED at most. */
export async function countAgents(
  db: Db,
  organisationId: string,
  { filter, endedBy }: Pick<AgentPage, 'filter' | 'endedBy'>,
): Promise<number> {
  const { count } = await db
    .selectFrom(shown(db, organisationId, filter, endedBy).select('a.id').limit(MOST_AGENTS_COUNTED).as('some'))
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** These agents of an organisation by their uuids, deleted ones too. */
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
