/** Searches audit rows: each query reads a bounded number of rows, and returns a cursor. */
import { sql } from 'kysely';
import { likesOf } from './agent-names.ts';
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
  /** Range of `created_at`: inclusive, exclusive. */
  since?: number | undefined;
  until?: number | undefined;
  /** Substring of one of SEARCHED, or of the name of the row's agent, case-insensitive. */
  text?: string | undefined;
  /** Only final rows, which have a hash. */
  final?: boolean | undefined;
};

/** `reached`: cursor for the next page; null: no more rows. There may be more rows even when none was found. */
export type Found = { rows: AuditRow[]; reached: string | null };

/** The columns that a text search covers. */
const SEARCHED = [
  'path',
  'reason',
  'detail',
  'platform_id',
  'agent_public_id',
  'agent_reason',
  'scope',
  'method',
  'id',
  'correlation_id',
  'approval_id',
] as const satisfies readonly (keyof AuditTable)[];

/** Rows scanned by one query, so that a selective filter does not block the store. */
const SCANNED_ROWS = 2_000;
/** The same for a text search, which tests many columns and the agent's name. */
const SCANNED_ROWS_FOR_TEXT = 500;
/** Tolerance between the time in a row's id and its `created_at`, in case the clock was adjusted. */
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
    // The rows of one agent are found by an index, so only they are scanned.
    if (isUuid(filter.agent)) query = query.where('agent_id', '=', filter.agent);
    return query.orderBy('id', direction);
  };
  const edge = isSelective(filter)
    ? (
        await inReach(reach)
          .select('id')
          .offset((filter.text === undefined ? SCANNED_ROWS : SCANNED_ROWS_FOR_TEXT) - 1)
          .limit(1)
          .executeTakeFirst()
      )?.id
    : undefined;
  // The cursor lies within the range, so it replaces the bound on its side.
  const scanned: Reach =
    edge === undefined
      ? reach
      : newestFirst
        ? { below: reach.below, atLeast: edge }
        : { above: reach.above, atLeast: reach.atLeast, atMost: edge };
  let query = inReach(scanned).selectAll();
  if (since !== undefined) query = query.where('created_at', '>=', since);
  if (until !== undefined) query = query.where('created_at', '<', until);
  const { agent, platform, kind, result, reason } = filter;
  if (agent !== undefined && !isUuid(agent)) query = query.where('agent_public_id', '=', agent);
  if (platform !== undefined) query = query.where('platform_id', '=', platform);
  if (kind !== undefined) query = query.where('kind', '=', kind);
  if (result !== undefined) query = query.where('result', '=', result);
  if (reason !== undefined) query = query.where('reason', '=', reason);
  const { text } = filter;
  if (text !== undefined) {
    query = query.where((eb) =>
      eb.or(
        likesOf(text).flatMap((like) => [
          ...SEARCHED.map((column) => sql<boolean>`lower(${eb.ref(column)}) like lower(${like}) escape '\\'`),
          // Looked up by each row's agent: an organisation may have a million agents, too many to search by name first.
          sql<boolean>`exists (select 1 from agents a where a.agent_id = audit_rows.agent_public_id
            and a.organisation_id = audit_rows.organisation_id and lower(a.name) like lower(${like}) escape '\\')`,
        ]),
      ),
    );
  }
  if (filter.final) query = query.where('state', '=', 'final');
  const rows = await query.limit(page.limit).execute();
  const last = rows.length === page.limit ? rows.at(-1)?.id : undefined;
  return { rows, reached: last ?? edge ?? null };
}

/** Range of ids, at most one bound on each side. */
type Reach = {
  atLeast?: string | undefined;
  above?: string | undefined;
  below?: string | undefined;
  atMost?: string | undefined;
};

/**
 * The range of ids to scan. Of two bounds on one side SQLite uses the first for the index, and tests the other on every row;
 * so only the narrower one is used.
 */
function reachOf({ since, until }: AuditFilter, { above, below }: Pick<Reach, 'above' | 'below'>): Reach {
  const first = since === undefined ? undefined : firstIdOf(since - SLACK_MS);
  const end = until === undefined ? undefined : firstIdOf(until + SLACK_MS);
  const lower = above !== undefined && (first === undefined || above >= first) ? { above } : { atLeast: first };
  return { ...lower, below: below === undefined || (end !== undefined && end < below) ? end : below };
}

/** Whether the filter may skip many rows. Times are bounds of the ids, and nearly all rows are final. */
function isSelective({ agent, platform, kind, result, reason, text }: AuditFilter): boolean {
  return [isUuid(agent) ? undefined : agent, platform, kind, result, reason, text].some(
    (wanted) => wanted !== undefined,
  );
}

const isUuid = (agent: string | undefined): agent is string => agent !== undefined && !agent.startsWith('agt_');

/** Returns the lowest id of an instant: no UUIDv7 of this instant or later is less (RFC 9562 section 5.7). */
export function firstIdOf(instant: number): string {
  const time = Math.max(0, Math.trunc(instant)).toString(16).padStart(12, '0').slice(-12);
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
