/** What agents did lately and what they wait for, by indexes alone: a bounded number of entries for each. */
import { sql } from 'kysely';
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';

/** So many calls of an agent are counted. */
export const MOST_COUNTED = 2_000;

export type AgentActivity = {
  agent_id: string;
  /** When its last call came, whatever became of it; null: it made none. */
  last_call_at: number | null;
  /** Since `since`, MOST_COUNTED at most; of these refused, and held for a person. A call that was held and then made is one. */
  calls: number;
  refused: number;
  held: number;
  /** What waits for a decision. */
  waiting_calls: number;
  waiting_requests: number;
};

/** What a call counts for in one sum, in which no count comes up to the next: so the calls are gone through once. */
const REFUSED = 10_000;
const HELD = 100_000_000;
const sumOf = (result: 'counted.result' | 'r.result') =>
  sql`sum(1 + case when ${sql.ref(result)} in ('denied', 'blocked') then ${sql.lit(REFUSED)}
    when ${sql.ref(result)} = 'held' then ${sql.lit(HELD)} else 0 end)`;

const countsIn = (sum: unknown) => {
  const all = Number(sum ?? 0);
  return { calls: all % REFUSED, refused: Math.floor((all % HELD) / REFUSED), held: Math.floor(all / HELD) };
};

/** Of these agents of one organisation, by their uuids. */
export async function activityOf(
  db: Db,
  organisationId: string,
  agents: readonly string[],
  { since, now }: { since: number; now: number },
): Promise<AgentActivity[]> {
  if (agents.length === 0) return [];
  const calls = sql`from audit_rows r where r.organisation_id = ${organisationId} and r.agent_id = a.id and r.kind = 'action'`;
  const waiting = (
    table: string,
  ) => sql`(select count(*) from ${sql.table(table)} w where w.organisation_id = ${organisationId}
    and w.agent_id = a.id and w.status = 'pending' and w.expires_at > ${now})`;
  // The index by which calls are counted does not tell which rows are of replays: those that people approved are looked up by approvals.
  const replayed = sql`(select ${sumOf('r.result')} from approvals p
    join audit_rows r on r.organisation_id = p.organisation_id and r.id = p.replay_audit_id
    where p.organisation_id = ${organisationId} and p.agent_id = a.id and p.status = 'approved' and p.expires_at > ${since}
      and p.replay_audit_id >= ${firstIdOf(since)} and r.id >= ${firstIdOf(since)})`;
  // One statement for all of them: PostgreSQL plans each for every partition of the audit, which takes longer than running it.
  const { rows } = await sql<Record<Column, string | number | null>>`
    select a.id,
      (select r.created_at ${calls} order by r.id desc limit 1) as last_call_at,
      (select ${sumOf('counted.result')}
        from (select r.result ${calls} and r.id >= ${firstIdOf(since)} order by r.id desc limit ${sql.lit(MOST_COUNTED)}) counted) as counts,
      ${replayed} as replays,
      ${waiting('approvals')} as waiting_calls,
      ${waiting('access_requests')} as waiting_requests
    from agents a where a.organisation_id = ${organisationId} and a.id in (${sql.join(agents)})`.execute(db);
  return rows.map(({ id, last_call_at, counts, replays, waiting_calls, waiting_requests }) => {
    const { calls, refused, held } = countsIn(counts);
    const replay = countsIn(replays);
    return {
      agent_id: String(id),
      last_call_at: last_call_at === null ? null : Number(last_call_at),
      // Of more than are counted a replay only makes room for another call.
      calls: calls === MOST_COUNTED ? calls : calls - replay.calls,
      refused: Math.max(0, refused - replay.refused),
      held,
      waiting_calls: Number(waiting_calls),
      waiting_requests: Number(waiting_requests),
    };
  });
}

type Column = 'id' | 'last_call_at' | 'counts' | 'replays' | 'waiting_calls' | 'waiting_requests';
