/** What agents did lately and what they wait for, by indexes alone: a bounded number of entries for each. */
import { sql } from 'kysely';
import { present } from '../policy/present.ts';
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';

/** So many calls of an agent are counted. */
export const MOST_COUNTED = 2_000;

export type AgentActivity = {
  agent_id: string;
  /** When its last call came, whatever became of it; null: it made none. */
  last_call_at: number | null;
  /** Since `since`, MOST_COUNTED at most; of these refused, and held for a person. */
  calls: number;
  refused: number;
  held: number;
  /** What waits for a decision. */
  waiting_calls: number;
  waiting_requests: number;
};

/** Of these agents of one organisation, by their uuids. */
export async function activityOf(
  db: Db,
  organisationId: string,
  agents: readonly string[],
  window: { since: number; now: number },
): Promise<AgentActivity[]> {
  // A small statement each, all of one text: with a million rows one statement with a part for each agent was slower.
  return await Promise.all(agents.map((agent) => activityOfOne(db, organisationId, agent, window)));
}

async function activityOfOne(
  db: Db,
  organisationId: string,
  agent: string,
  { since, now }: { since: number; now: number },
): Promise<AgentActivity> {
  const calls = sql`from audit_rows r where r.organisation_id = ${organisationId} and r.agent_id = ${agent} and r.kind = 'action'`;
  const { rows } = await sql<Record<Exclude<keyof AgentActivity, 'agent_id'>, string | number | null>>`
    select (select r.created_at ${calls} order by r.id desc limit 1) as last_call_at,
      count(*) as calls,
      sum(case when counted.result in ('denied', 'blocked') then 1 else 0 end) as refused,
      sum(case when counted.result = 'held' then 1 else 0 end) as held,
      (select count(*) from approvals p where p.organisation_id = ${organisationId} and p.agent_id = ${agent}
        and p.status = 'pending' and p.expires_at > ${now}) as waiting_calls,
      (select count(*) from access_requests q where q.organisation_id = ${organisationId} and q.agent_id = ${agent}
        and q.status = 'pending' and q.expires_at > ${now}) as waiting_requests
    from (select r.result ${calls} and r.id >= ${firstIdOf(since)} order by r.id desc limit ${sql.lit(MOST_COUNTED)}) counted`.execute(
    db,
  );
  const { last_call_at, ...counts } = present(rows[0], 'count');
  const number = (value: string | number | null) => Number(value ?? 0);
  return {
    agent_id: agent,
    last_call_at: last_call_at === null ? null : Number(last_call_at),
    calls: number(counts.calls),
    refused: number(counts.refused),
    held: number(counts.held),
    waiting_calls: number(counts.waiting_calls),
    waiting_requests: number(counts.waiting_requests),
  };
}
