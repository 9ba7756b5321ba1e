/**
 * Counts calls by hour, platform and agent, from audit rows, beside the calls and never on their way: a few rows at a time, and what
 * was counted is written in short transactions. A restart goes on where the last round ended; of several processes one counts.
 */

import { shownFlags } from '../audit/audit-flags.ts';
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';
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
} from '../store/activity-counts.ts';
import { listOrganisations } from '../store/organisations.ts';
import type { Store } from '../store/store.ts';
import type { ActivityCountTable } from '../store/tables/calls.ts';
import { inTransaction } from '../store/transaction.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** A row is dated when its call began, and stored when that ended. Longer ones are stored at their beginning. */
const SETTLED_MS = 3 * 60_000;
/** A call that is under way longer than this (a stream) is counted as one that was allowed. */
const UNDER_WAY_MS = 15 * 60_000;
/** Rows of one look: SQLite answers in the broker's own thread, and this takes it about a millisecond. */
const ROWS_AT_ONCE = 250;
const PAUSE_MS = 5;
/** Rows of one transaction: a short one, because SQLite has one at a time. */
const ROWS_WRITTEN = 2_000;
/** Rows of one round and organisation; the rest is the next round's. */
const MOST_ROWS = 100_000;

/** By agent and hour for the last day; by agent and day, and by platform and hour, for a year. */
const KEPT_MS: Readonly<Record<Dimension, number>> = {
  agent_hour: 3 * DAY_MS,
  agent_day: 400 * DAY_MS,
  platform_hour: 400 * DAY_MS,
};

/** How a call ended, for plots; undefined: it is no call of its own. What is made of an approved call is told apart: its hold was counted. */
export function outcomeOf(row: CountedRow): Outcome | undefined {
  const { kind, state, result, approval_id, upstream_status } = row;
  if (kind !== 'action') return undefined;
  const ended = state === 'intent' || result === null ? 'allowed' : result;
  const refused = (upstream_status !== null && upstream_status >= 400) || shownFlags(row).failed === true;
  const outcome = ended === 'allowed' && refused ? 'failed' : ended;
  if (approval_id === null || outcome === 'held') return outcome;
  // What was approved and then refused here was not sent: the platform did not fail.
  if (outcome === 'denied' || outcome === 'blocked') return undefined;
  return outcome === 'allowed' ? 'made' : 'made_failed';
}

/** When the row was made, by its id (UUIDv7). */
export const momentOf = (id: string): Instant => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

/** Sums what rows add, by what stands in ActivityCountTable. */
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

/** One round: all organisations, and forgetting what is old. */
export async function countActivity({ store }: Pick<Broker, 'store'>, now: Instant): Promise<void> {
  for (const { id } of await listOrganisations(store.db)) await countOf(store, id, now);
  for (const dimension of Object.keys(KEPT_MS) as Dimension[])
    await forgetCounts(store.db, dimension, now - KEPT_MS[dimension]);
}

async function countOf({ db }: Store, organisationId: string, now: Instant): Promise<void> {
  for (let counted = 0; counted < MOST_ROWS; counted += ROWS_WRITTEN) {
    if (!(await countSome(db, organisationId, now))) return;
    await pause(PAUSE_MS);
  }
}

/** Counts the next rows, in one transaction. Answers whether there may be more. */
async function countSome(db: Store['db'], organisationId: string, now: Instant): Promise<boolean> {
  const from = await countedTo(db, organisationId);
  const below = rowsBefore(now - SETTLED_MS);
  const rows: CountedRow[] = [];
  let above = from;
  let isEnd = false;
  while (rows.length < ROWS_WRITTEN && !isEnd) {
    const found = await rowsToCount(db, organisationId, { above, below, limit: ROWS_AT_ONCE });
    const open = found.findIndex(({ id, state }) => state === 'intent' && momentOf(id) > now - UNDER_WAY_MS);
    rows.push(...(open < 0 ? found : found.slice(0, open)));
    above = rows.at(-1)?.id ?? above;
    isEnd = open >= 0 || found.length < ROWS_AT_ONCE;
    if (!isEnd) await pause(PAUSE_MS);
  }
  if (above === from) return false;
  const counts = sumOf(organisationId, rows).filter(({ dimension, at }) => at >= now - KEPT_MS[dimension]);
  const isMine = await inTransaction(db, async (tx) => {
    const moved = await moveMark(tx, organisationId, from, above);
    if (moved) await addCounts(tx, counts);
    return moved;
  });
  return isMine && !isEnd;
}
