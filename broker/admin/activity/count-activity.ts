/**
 * Counts calls by hour, platform and agent, from audit rows, in a background job and never on the path of calls: a few rows at a time, written in
 * short transactions. After a restart it continues where the last round ended; of several processes one counts.
 */

import { shownFlags } from '../../audit/audit-flags.ts';
import type { Broker } from '../../broker.ts';
import { momentOf } from '../../crypto/ids.ts';
import type { Instant } from '../../policy/facts.ts';
import { pause } from '../../runtime/waits.ts';
import {
  addCounts,
  type CountedRow,
  countedTo,
  type Dimension,
  forgetCounts,
  moveMark,
  type Outcome,
  rowsBefore,
  rowsToCount,
} from '../../store/activity-counts.ts';
import { listOrganisations } from '../../store/organisations.ts';
import type { Store } from '../../store/store.ts';
import type { ActivityCountTable } from '../../store/tables/calls.ts';
import { inTransaction } from '../../store/transaction.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/**
 * A row's id has the time at which its call began, but the row may be stored when the call ended. Rows of longer calls are stored at their beginning.
 */
const SETTLED_MS = 3 * 60_000;
/** A call that is in flight longer than this (a stream) is counted as allowed. */
const MAX_IN_FLIGHT_MS = 15 * 60_000;
/** Rows per query: SQLite runs in the broker's own thread, and this takes about a millisecond. */
const BATCH_ROWS = 250;
const PAUSE_MS = 5;
/** Rows per transaction: kept short, because SQLite has one at a time. */
const ROWS_WRITTEN = 2_000;
/** Rows per round and organisation; the rest is left to the next round. */
const MAX_ROWS = 100_000;

/** By agent and hour for the last days; by agent and day, and by platform and hour, for a year. */
const RETENTION_MS: Readonly<Record<Dimension, number>> = {
  agent_hour: 3 * DAY_MS,
  agent_day: 400 * DAY_MS,
  platform_hour: 400 * DAY_MS,
};

/**
 * Returns how a call ended, for charts; undefined when the row is not a call of its own. The replay of an approved call has separate outcomes,
 * because its hold was counted as the call.
 */
export function outcomeOf(row: CountedRow): Outcome | undefined {
  const { kind, state, result, approval_id, upstream_status } = row;
  if (kind !== 'action') return undefined;
  const ended = state === 'intent' || result === null ? 'allowed' : result;
  const refused = (upstream_status !== null && upstream_status >= 400) || shownFlags(row).failed === true;
  const outcome = ended === 'allowed' && refused ? 'failed' : ended;
  if (approval_id === null || outcome === 'held') return outcome;
  // A replay that was refused by the broker was not sent, so it is no failure of the platform.
  if (outcome === 'denied' || outcome === 'blocked') return undefined;
  return outcome === 'allowed' ? 'made' : 'made_failed';
}

/** Aggregates rows into the counters of ActivityCountTable. */
export function sumOf(organisationId: string, rows: readonly CountedRow[]): ActivityCountTable[] {
  const sums = new Map<string, ActivityCountTable>();
  const add = (dimension: Dimension, at: number, name: string, outcome: Outcome) => {
    const key = `${dimension} ${at} ${outcome} ${name}`;
    const sum = sums.get(key) ?? { organisation_id: organisationId, dimension, at, name, outcome, calls: 0 };
    sum.calls += 1;
    sums.set(key, sum);
  };
  for (const row of rows) {
    const outcome = outcomeOf(row);
    if (outcome === undefined) continue;
    const moment = momentOf(row.id);
    const hour = moment - (moment % HOUR_MS);
    add('platform_hour', hour, row.platform_id ?? '', outcome);
    if (row.agent_public_id === null) continue;
    add('agent_hour', hour, row.agent_public_id, outcome);
    add('agent_day', moment - (moment % DAY_MS), row.agent_public_id, outcome);
  }
  return [...sums.values()];
}

/** Runs one round: counts for all organisations, and deletes old counts. */
export async function countActivity({ store }: Pick<Broker, 'store'>, now: Instant): Promise<void> {
  for (const { id } of await listOrganisations(store.db)) await countOf(store, id, now);
  for (const dimension of Object.keys(RETENTION_MS) as Dimension[])
    await forgetCounts(store.db, dimension, now - RETENTION_MS[dimension]);
}

async function countOf({ db }: Store, organisationId: string, now: Instant): Promise<void> {
  for (let counted = 0; counted < MAX_ROWS; counted += ROWS_WRITTEN) {
    if (!(await countSome(db, organisationId, now))) return;
    await pause(PAUSE_MS);
  }
}

/** Counts the next rows, in one transaction. Returns whether there may be more. */
async function countSome(db: Store['db'], organisationId: string, now: Instant): Promise<boolean> {
  const from = await countedTo(db, organisationId);
  const below = rowsBefore(now - SETTLED_MS);
  const rows: CountedRow[] = [];
  let above = from;
  let isEnd = false;
  while (rows.length < ROWS_WRITTEN && !isEnd) {
    const found = await rowsToCount(db, organisationId, { above, below, limit: BATCH_ROWS });
    const open = found.findIndex(({ id, state }) => state === 'intent' && momentOf(id) > now - MAX_IN_FLIGHT_MS);
    rows.push(...(open < 0 ? found : found.slice(0, open)));
    above = rows.at(-1)?.id ?? above;
    isEnd = open >= 0 || found.length < BATCH_ROWS;
    if (!isEnd) await pause(PAUSE_MS);
  }
  if (above === from) return false;
  const counts = sumOf(organisationId, rows).filter(({ dimension, at }) => at >= now - RETENTION_MS[dimension]);
  const isMine = await inTransaction(db, async (tx) => {
    const moved = await moveMark(tx, organisationId, from, above);
    if (moved) await addCounts(tx, counts);
    return moved;
  });
  return isMine && !isEnd;
}
