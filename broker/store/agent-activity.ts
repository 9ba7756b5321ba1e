/** Recent activity of agents and their pending requests, from indexes alone, with a limit of entries per agent. */
import { sql } from 'kysely';
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';

/** Limit of calls counted per agent. */
export const MAX_COUNTED = 2_000;

export type AgentActivity = {
  agent_id: string;
  /** Time of the last call, whatever its result; null: the agent made none. */
  last_call_at: number | null;
  /** Calls since `since`, MAX_COUNTED at most, and how many of these were refused or held. A held call that was made later counts once. */
  calls: number;
  refused: number;
  held: number;
  /** Held calls and access requests that wait for a decision. */
  waiting_calls: number;
  waiting_requests: number;
};

/** Weights that pack three counts into one sum without overflow into each other, so that the calls are scanned only once. */
const REFUSED = 10_000;
const HELD = 100_000_000;
const sumOf = (result: 'counted.result' | 'r.result') =>
  sql`sum(1 + case when ${sql.ref(result)} in ('denied', 'blocked') then ${sql.lit(REFUSED)}
    when ${sql.ref(result)} = 'held' then ${sql.lit(HELD)} else 0 end)`;

const countsIn = (sum: unknown) => {
  const all = Number(sum ?? 0);
  return { calls: all % REFUSED, refused: Math.floor((all % HELD) / REFUSED), held: Math.floor(all / HELD) };
};

/** Returns the activity of these agents (uuids) of one organisation. */
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
  // The index used for counting does not identify replays, so they are found through approvals and subtracted.
  const replayed = sql`(select ${sumOf('r.result')} from approvals p
    join audit_rows r on r.organisation_id = p.organisation_id and r.id = p.replay_audit_id
    where p.organisation_id = ${organisationId} and p.agent_id = a.id and p.status = 'approved' and p.expires_at > ${since}
      and p.replay_audit_id >= ${firstIdOf(since)} and r.id >= ${firstIdOf(since)})`;
  // One statement for all: PostgreSQL plans each statement for every audit partition, which takes longer than executing it.
  const { rows } = await sql<Record<Column, string | number | null>>`
    select a.id,
      (select r.created_at ${calls} order by r.id desc limit 1) as last_call_at,
      (select ${sumOf('counted.result')}
        from (select r.result ${calls} and r.id >= ${firstIdOf(since)} order by r.id desc limit ${sql.lit(MAX_COUNTED)}) counted) as counts,
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
      // At the limit, subtracting a replay would only make room for an uncounted call.
      calls: calls === MAX_COUNTED ? calls : calls - replay.calls,
      refused: Math.max(0, refused - replay.refused),
      held,
      waiting_calls: Number(waiting_calls),
      waiting_requests: Number(waiting_requests),
    };
  });
}

type Column = 'id' | 'last_call_at' | 'counts' | 'replays' | 'waiting_calls' | 'waiting_requests';
