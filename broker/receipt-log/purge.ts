/**
 * Deletes audit rows that their organisation keeps no longer, oldest first, in small steps beside the calls. Their hashes stay in the
 * receipt log. An event says which rows go, and they go when a checkpoint covers it and no export is under way that ends before it, so that a verifier can always tell them from rows that
 * somebody removed.
 */

import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';
import type { Broker, Uses } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { PURGED, RETAINED_KINDS, type RetainedKind, Retention } from '../policy/retention.ts';
import { pause } from '../runtime/waits.ts';
import { findAuditRow } from '../store/audit.ts';
import {
  deleteRowsOf,
  findPurge,
  findRowsOf,
  listRetentions,
  moveAnnounced,
  moveDeleted,
} from '../store/audit-purges.ts';
import { pushedTo } from '../store/audit-sinks.ts';
import { isHeld } from '../store/log-holds.ts';
import { endOfNextTile, findReceiptLog, listEntriesSince } from '../store/receipt-logs.ts';
import type { Db } from '../store/store.ts';
import { readStored } from '../store/stored-json.ts';
import type { AuditPurgeTable, LogEntriesTable } from '../store/tables/receipt-log.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { findIndex } from './find-place.ts';
import { TILE_WIDTH } from './merkle.ts';
import { entriesIn } from './tree.ts';

const DAY_MS = 24 * 3600 * 1000;
/** In one transaction: calls wait for it where the store has one writer. */
const TILES_AT_ONCE = 2;
/** Between two steps, for the calls. */
const PAUSE_MS = 20;
/** Other chores wait for this one; the next round goes on where this one ended. */
const ROUND_MS = 10_000;

/** `isAnnouncing`: what was announced before this round is deleted; what is announced in it is deleted in the next one. */
type Owed = { organisationId: string; kind: RetainedKind; before: Instant; now: Instant; isAnnouncing: boolean };

type Purging = Changing & Uses<'storeClock'>;

/**
 * The chore. A round goes on after the kind and organisation with which the last one ended: else those that come first would use up every round. What
 * fails for one organisation keeps no other from its turn. `roundMs`: for tests.
 */
export function purgeChore(services: Purging, roundMs = ROUND_MS): (now: Instant) => Promise<void> {
  let last = '';
  return async (now) => {
    const until = performance.now() + roundMs;
    const { owed, failures } = await listOwed(services.broker.store.db, now);
    const next = Math.max(
      0,
      owed.findIndex((one) => placeOf(one) > last),
    );
    let isTimeUp = false;
    // In turns, so that an organisation with much to delete does not keep the others waiting.
    for (let turn = [...owed.slice(next), ...owed.slice(0, next)]; turn.length > 0 && !isTimeUp; ) {
      const more: Owed[] = [];
      for (const one of turn) {
        last = placeOf(one);
        const left = await purgeStep(services, one).catch((error: unknown) => {
          failures.push(error);
          return undefined;
        });
        isTimeUp = performance.now() > until;
        if (isTimeUp) break;
        if (!left) continue;
        more.push(left);
        await pause(PAUSE_MS);
      }
      turn = more;
    }
    if (failures.length > 0) throw failures[0];
  };
}

const placeOf = ({ organisationId, kind }: Owed): string => `${organisationId} ${kind}`;

/** What is kept no longer of all organisations, by their places. `failures`: of those whose retention was altered in the store. */
async function listOwed(db: Db, now: Instant): Promise<{ owed: Owed[]; failures: unknown[] }> {
  const owed: Owed[] = [];
  const failures: unknown[] = [];
  for (const { id, retention } of await listRetentions(db)) {
    try {
      const kept = readStored(Retention, retention, `retention of organisation ${id}`);
      for (const kind of RETAINED_KINDS) {
        const days = kept[`${kind}_days`];
        if (days !== null)
          owed.push({ organisationId: id, kind, before: now - days * DAY_MS, now, isAnnouncing: false });
      }
    } catch (error) {
      failures.push(error);
    }
  }
  return { owed: owed.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1)), failures };
}

/** Deletes some of what was announced and is proved by a checkpoint; when all of it is gone, announces more. Undefined: nothing is left to do in this round. */
async function purgeStep(services: Purging, owed: Owed): Promise<Owed | undefined> {
  const { organisationId, kind, isAnnouncing } = owed;
  const purge = await findPurge(services.broker.store.db, organisationId, kind);
  if (!isAnnouncing && purge.next_index < purge.announced_index) {
    if (!(await mayGo(services.broker, purge))) return undefined;
    return (await deleteAnnounced(services.broker, purge)) ? owed : undefined;
  }
  return (await announce(services, purge, owed)) ? { ...owed, isAnnouncing: true } : undefined;
}

/**
 * Whether a checkpoint covers the events, and no export is under way whose checkpoint does not: it could not tell that rows were deleted for
 * their time.
 */
async function mayGo(
  broker: Pick<Broker, 'store' | 'storeClock'>,
  { organisation_id, event_id }: AuditPurgeTable,
): Promise<boolean> {
  const { db } = broker.store;
  // No event: none of the rows so far was of the kind.
  if (event_id === null) return true;
  const event = await findAuditRow(db, organisation_id, event_id);
  const index = event && (await findIndex(broker, event));
  if (index === undefined) return false;
  const isCovered = index < ((await findReceiptLog(db, organisation_id))?.checkpoint_size ?? 0);
  // In this order: an export that begins in between has the checkpoint.
  return isCovered && !(await isHeld(db, organisation_id, index, broker.storeClock.now()));
}

async function deleteAnnounced({ store: { db } }: Pick<Broker, 'store'>, purge: AuditPurgeTable): Promise<boolean> {
  const { organisation_id, kind, next_index: from, announced_index: end } = purge;
  const places = (await placesFrom(db, organisation_id, from)).filter(({ index }) => index < end);
  const last = places.at(-1);
  if (last === undefined) return false;
  return await db.transaction().execute(async (tx) => {
    if (!(await moveDeleted(tx, purge, last.index + 1))) return false;
    await deleteRowsOf(tx, organisation_id, idsOf(places), kind);
    return true;
  });
}

async function announce(services: Changing, purge: AuditPurgeTable, owed: Owed): Promise<boolean> {
  const { db } = services.broker.store;
  const { organisation_id: organisationId, kind, announced_index: from } = purge;
  const pushed = (await pushedTo(db, organisationId)) ?? Number.POSITIVE_INFINITY;
  const places = (await oldPlacesFrom(db, owed, from)).filter(({ index }) => index < pushed);
  const last = places.at(-1);
  if (last === undefined) return false;
  const to = last.index + 1;
  const old = new Set(await findRowsOf(db, organisationId, idsOf(places), kind));
  if (old.size === 0) return await moveAnnounced(db, purge, { to, eventId: null });
  const by = byBroker(organisationId);
  const announced = await recordChange(services, by, { reason: PURGED }, async (tx, note, eventId) => {
    if (!(await moveAnnounced(tx, purge, { to, eventId }))) return rollback('another process purges');
    note({
      kind,
      before: new Date(owed.before).toISOString(),
      rows: old.size,
      purged: bitsByTile(places.filter(({ id }) => old.has(id)).map(({ index }) => index)),
    });
    return true;
  });
  return !(announced instanceof RolledBack);
}

type Place = { id: string; index: number };
const idsOf = (places: readonly Place[]): string[] => places.map(({ id }) => id);

/** The next places of the log from an index on. */
async function placesFrom(db: Db, organisationId: string, from: number): Promise<Place[]> {
  return placesIn(await tilesFrom(db, organisationId, from), from);
}

/** The same up to the first tile with a row that ended at `before` or later. */
async function oldPlacesFrom(db: Db, { organisationId, before, now }: Owed, from: number): Promise<Place[]> {
  const old: LogEntriesTable[] = [];
  for (const tile of await tilesFrom(db, organisationId, from)) {
    // By a clock that was ahead: what stands after it was final later.
    const isKnown = tile.last_at <= now;
    const end = isKnown ? tile.last_at : await endOfNextTile(db, organisationId, tile.tile_index, now);
    if (end === undefined || end >= before) break;
    old.push(tile);
  }
  return placesIn(old, from);
}

const tilesFrom = (db: Db, organisationId: string, from: number): Promise<LogEntriesTable[]> =>
  listEntriesSince(db, organisationId, { since: 0, from: Math.floor(from / TILE_WIDTH), limit: TILES_AT_ONCE });

const placesIn = (tiles: readonly LogEntriesTable[], from: number): Place[] =>
  tiles
    .flatMap((tile) => entriesIn(tile).map(({ id }, at) => ({ id, index: tile.tile_index * TILE_WIDTH + at })))
    .filter(({ index }) => index >= from);

/** Which rows of each tile: base64 of 32 bytes, row `i` of the tile being bit `i % 8`, from the lowest, of byte `i / 8`. */
function bitsByTile(indexes: readonly number[]): Record<string, string> {
  const tiles = Map.groupBy(indexes, (index) => Math.floor(index / TILE_WIDTH));
  return Object.fromEntries(
    [...tiles].map(([tile, within]) => {
      const bits = Buffer.alloc(TILE_WIDTH / 8);
      for (const index of within) {
        const at = index % TILE_WIDTH;
        bits.writeUInt8(bits.readUInt8(at >> 3) | (1 << (at & 7)), at >> 3);
      }
      return [String(tile), bits.toString('base64')];
    }),
  );
}
