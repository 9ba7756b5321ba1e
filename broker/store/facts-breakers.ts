/** Which breakers the facts query reads. */
import { sql } from 'kysely';
import { BREAKER_LIMITS } from '../policy/breaker.ts';

/**
 * Wildcard source address of a query. Breakers for wrong signatures are per address; with the wildcard the query reads the one that stays
 * open longest.
 */
export const ANY_ADDRESS = '*';

const keyOpenLongest = (agent: string) => sql<string>`(select x.key from breakers as x
  where x.organisation_id = a.organisation_id and x.agent_id = ${sql.ref(agent)} and x.cause = 'breaker_auth_failure'
    and x.open_until is not null
  order by x.open_until desc, x.key limit 1)`;

/** The address whose signature breaker is read. `agent`: the column with the uuid of the breaker's agent. */
export const addressOf = (agent: 'a.id' | 'a.parent_id') =>
  sql<string>`case when q.source = ${sql.lit(ANY_ADDRESS)} then ${keyOpenLongest(agent)} else q.source end`;

const { openMs } = BREAKER_LIMITS.breaker_upstream_failure;

/** Aggregates the upstream breakers of the platforms on which the agent has grants; null when none of its breakers is open. */
const overGranted = (aggregate: ReturnType<typeof sql<number>>) => sql<number | null>`case when exists (
    select 1 from breakers as ux where ux.organisation_id = a.organisation_id and ux.agent_id = a.id
      and ux.cause = 'breaker_upstream_failure' and ux.open_until is not null)
  then (select ${aggregate} from grants as ug left join breakers as ub
    on ub.organisation_id = ug.organisation_id and ub.agent_id = ug.agent_id
      and ub.cause = 'breaker_upstream_failure' and ub.key = ug.platform_id
    where ug.organisation_id = a.organisation_id and ug.agent_id = a.id) end`;

/** When the first platform accepts calls again, including pending trial calls; 0 when one of them accepts calls now. */
export const allUpstreamUntil = overGranted(sql<number>`min(case
  when ub.open_until is null then 0
  when ub.trial_at + ${sql.lit(openMs)} > ub.open_until then ub.trial_at + ${sql.lit(openMs)}
  else ub.open_until end)`);

/** When the most recent of these breakers opened. */
export const allUpstreamSince = overGranted(sql<number>`max(ub.opened_at)`);
