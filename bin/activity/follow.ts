/** Follows the audit: prints each row once as it arrives, across broken connections and restarts of the broker. */
import { setTimeout as pause } from 'node:timers/promises';
import type { AuditRow } from '../../broker/console/answers.ts';
import { CommandFailed, RefusedByBroker } from '../failure.ts';
import type { OwnerApi } from '../owner-api.ts';
import { type RowFilter, readRows } from './read-rows.ts';

/** Polls, because the events for owners (/owner/events) report only what waits for a decision, and no audit rows. */
const INTERVAL_MS = 1_000;
/** A row is dated when its call began, and arrives when the call ended: at most this much later, in milliseconds. */
const LATE_MS = 150_000;
/** Most calls end sooner: each poll looks back this far, every tenth as far as LATE_MS. */
const SOON_MS = 10_000;
const FULL_POLL_EVERY = 10;

type Following = {
  /** Reconnects. Throws CommandFailed while there is no broker to connect to. */
  connect: () => Promise<OwnerApi>;
  filter: RowFilter;
  /** Rows that were already printed, oldest first. */
  printed: readonly AuditRow[];
  print: (api: OwnerApi, rows: AuditRow[]) => Promise<void>;
  /** Called once when the broker becomes unreachable, and once when it is back. */
  tell: (words: string) => void;
  signal: AbortSignal;
};

/** Follows until the signal is aborted. Prints final rows, oldest first within one poll. Throws refusals of the broker. */
export async function followRows({ connect, filter, printed, print, tell, signal }: Following): Promise<void> {
  const seen = new Map<string, number>();
  /** Calls in flight by id, with the time when they began. */
  const open = new Map<string, number>();
  let newest = 0;
  const note = (row: AuditRow): void => {
    const at = Date.parse(row.created_at);
    newest = Math.max(newest, at);
    if (row.state === 'intent') open.set(row.id, at);
    else {
      open.delete(row.id);
      seen.set(row.id, at);
    }
  };
  for (const row of printed) note(row);
  /** Rows before this id were cut off by the limit of the first page. Ids are in the order of time (UUIDv7). */
  const oldest = printed[0]?.id ?? '';
  let api: OwnerApi | undefined;
  let isDown = false;
  for (let round = 0; !signal.aborted; round++) {
    try {
      api ??= await connect();
      // After an outage, rows from before it may arrive late, too.
      const back = isDown || round % FULL_POLL_EVERY === 0 ? LATE_MS : SOON_MS;
      const from = Math.min(newest - back, ...open.values());
      const since =
        newest === 0 ? filter.since : new Date(Math.max(from, Date.parse(filter.since ?? '') || 0)).toISOString();
      const rows = await readRows(api, { ...filter, ...(since !== undefined && { since }) }, Number.POSITIVE_INFINITY);
      const fresh = rows
        .filter(({ id, state }) => state === 'final' && !seen.has(id) && (round > 0 || id > oldest))
        .reverse();
      if (fresh.length > 0) await print(api, fresh);
      for (const row of rows) note(row);
      for (const [id, at] of seen) if (at < from - LATE_MS) seen.delete(id);
      if (isDown) tell('The broker answers again.');
      isDown = false;
    } catch (error) {
      if (!isPassing(error)) throw error;
      if (!isDown) tell('The broker does not answer; asking again until it does.');
      isDown = true;
      api = undefined;
    }
    await pause(INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}

/** Whether a retry may succeed: refusals of the broker are permanent, except 429, and 401, for which reconnecting obtains a new session. */
const isPassing = (error: unknown): boolean =>
  error instanceof CommandFailed && !(error instanceof RefusedByBroker && error.status !== 401 && error.status !== 429);
