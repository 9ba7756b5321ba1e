/** Rows as they come, each once: over broken connections and restarts of the broker, too. */
import { setTimeout as pause } from 'node:timers/promises';
import type { AuditRow } from '../../broker/console/answers.ts';
import { CommandFailed, RefusedByBroker } from '../failure.ts';
import type { OwnerApi } from '../owner-api.ts';
import { type RowFilter, readRows } from './read-rows.ts';

/** It asks, as the events that owners are sent (/owner/events) tell what waits, and nothing of what is on record. */
const EVERY_MS = 1_000;
/** A row is dated when its call began, and comes when that ended: an answer is waited for this long at most. */
const LATE_MS = 150_000;
/** Most calls end sooner: so far is looked back each time, and as far as above now and then. */
const SOON_MS = 10_000;
const SWEEP_EVERY = 10;

type Following = {
  /** Connects again; throws CommandFailed while there is nothing to connect to. */
  connect: () => Promise<OwnerApi>;
  filter: RowFilter;
  /** Rows that were read already, oldest first. */
  printed: readonly AuditRow[];
  print: (api: OwnerApi, rows: AuditRow[]) => Promise<void>;
  /** Told once when the broker does not answer, and once when it does again. */
  tell: (words: string) => void;
  signal: AbortSignal;
};

/** Until the signal. Throws what the broker refuses. Rows come when they are final, oldest first of those that came at once. */
export async function followRows({ connect, filter, printed, print, tell, signal }: Following): Promise<void> {
  const seen = new Map<string, number>();
  /** Calls that are under way, and when they began. */
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
  /** What is older than that was left out by its number. Ids are in the order of time (UUIDv7). */
  const oldest = printed[0]?.id ?? '';
  let api: OwnerApi | undefined;
  let isDown = false;
  for (let round = 0; !signal.aborted; round++) {
    try {
      api ??= await connect();
      // After an outage, what happened before it may have come late, too.
      const back = isDown || round % SWEEP_EVERY === 0 ? LATE_MS : SOON_MS;
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
    await pause(EVERY_MS, undefined, { signal }).catch(() => {});
  }
}

/** Whether it may work the next time: only what the broker itself refuses does not. Its sessions end, which a new one mends. */
const isPassing = (error: unknown): boolean =>
  error instanceof CommandFailed && !(error instanceof RefusedByBroker && error.status !== 401 && error.status !== 429);
