/** Looking for audit rows, however many there are: each question reads so many rows at most, and says how far it came. */
import type { AuditRow } from './audit.ts';
import type { AuditTable } from './audit-columns.ts';
import type { Db } from './store.ts';

export type AuditFilter = {
  /** The agent's uuid or `agt_` id. */
  agent?: string | undefined;
  platform?: string | undefined;
  kind?: AuditTable['kind'] | undefined;
  result?: NonNullable<AuditTable['result']> | undefined;
  reason?: string | undefined;
  /** When the row was begun: from this moment on, and before that one. */
  since?: number | undefined;
  until?: number | undefined;
  /** Only rows that are final, and so have their hash. */
  final?: boolean | undefined;
};

/** `reached`: look on beyond this id; null: there is nothing more. There may be more even when no row was found. */
export type Found = { rows: AuditRow[]; reached: string | null };

/** So many rows are looked at for one question, so that a filter that hardly any row passes keeps nobody waiting. */
const LOOKED_AT = 2_000;
/** A row is begun right after its id was made; clocks that are set meanwhile are the exception. */
const SLACK_MS = 600_000;

/**
 * Up to `limit` of an organisation's rows that pass the filter, beyond an id (exclusive): below it, newest first, or above
 * it, oldest first. Ids are UUIDv7, so their order is the order of time.
 */
export async function findAuditRows(
  db: Db,
  organisationId: string,
  filter: AuditFilter,
  page: { order: 'newest_first' | 'oldest_first'; beyond?: string | undefined; limit: number },
): Promise<Found> {
  const newestFirst = page.order === 'newest_first';
  const direction = newestFirst ? 'desc' : 'asc';
  const { since, until } = filter;
  const reach = reachOf(filter, newestFirst ? { below: page.beyond } : { above: page.beyond });
  const inReach = ({ atLeast, above, below, atMost }: Reach) => {
    let query = db.selectFrom('audit_rows').where('organisation_id', '=', organisationId);
    if (atLeast !== undefined) query = query.where('id', '>=', atLeast);
    if (above !== undefined) query = query.where('id', '>', above);
    if (below !== undefined) query = query.where('id', '<', below);
    if (atMost !== undefined) query = query.where('id', '<=', atMost);
    return query.orderBy('id', direction);
  };
  const edge = isSelective(filter)
    ? (
        await inReach(reach)
          .select('id')
          .offset(LOOKED_AT - 1)
          .limit(1)
          .executeTakeFirst()
      )?.id
    : undefined;
  // The edge lies within the reach, so it takes the place of the bound on its side.
  const looked: Reach =
    edge === undefined
      ? reach
      : newestFirst
        ? { below: reach.below, atLeast: edge }
        : { above: reach.above, atLeast: reach.atLeast, atMost: edge };
  let query = inReach(looked).selectAll();
  if (since !== undefined) query = query.where('created_at', '>=', since);
  if (until !== undefined) query = query.where('created_at', '<', until);
  const { agent, platform, kind, result, reason } = filter;
  if (agent !== undefined) query = query.where(agent.startsWith('agt_') ? 'agent_public_id' : 'agent_id', '=', agent);
  if (platform !== undefined) query = query.where('platform_id', '=', platform);
  if (kind !== undefined) query = query.where('kind', '=', kind);
  if (result !== undefined) query = query.where('result', '=', result);
  if (reason !== undefined) query = query.where('reason', '=', reason);
  if (filter.final) query = query.where('state', '=', 'final');
  const rows = await query.limit(page.limit).execute();
  const last = rows.length === page.limit ? rows.at(-1)?.id : undefined;
  return { rows, reached: last ?? edge ?? null };
}

/** Bounds of ids, at most one on each side. */
type Reach = {
  atLeast?: string | undefined;
  above?: string | undefined;
  below?: string | undefined;
  atMost?: string | undefined;
};

/**
 * Where to look. Of two bounds on one side SQLite takes whichever is written first for the index, and tests the other on every
 * row; so the narrower one is chosen here.
 */
function reachOf({ since, until }: AuditFilter, { above, below }: Pick<Reach, 'above' | 'below'>): Reach {
  const first = since === undefined ? undefined : firstIdOf(since - SLACK_MS);
  const end = until === undefined ? undefined : firstIdOf(until + SLACK_MS);
  const lower = above !== undefined && (first === undefined || above >= first) ? { above } : { atLeast: first };
  return { ...lower, below: below === undefined || (end !== undefined && end < below) ? end : below };
}

/** Whether rows in a row may fail to pass. Moments are bounds of the ids, and hardly any row is not final. */
function isSelective({ agent, platform, kind, result, reason }: AuditFilter): boolean {
  return [agent, platform, kind, result, reason].some((wanted) => wanted !== undefined);
}

/** No UUIDv7 of this instant or a later one is less (RFC 9562 section 5.7). */
export function firstIdOf(instant: number): string {
  const time = Math.max(0, Math.trunc(instant)).toString(16).padStart(12, '0').slice(-12);
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
