/** Finds entries of the receipt log whose retention has expired, and which of their rows can be deleted. */
import { rowHash } from '../audit/receipt.ts';
import type { Instant } from '../policy/facts.ts';
import type { RetainedKind } from '../policy/retention.ts';
import type { AuditRow } from '../store/audit.ts';
import { findRowsOf } from '../store/audit-purges.ts';
import { endOfNextTile, listEntriesSince } from '../store/receipt-logs.ts';
import type { Db } from '../store/store.ts';
import type { LogEntriesTable } from '../store/tables/receipt-log.ts';
import { TILE_WIDTH } from './merkle.ts';
import { type Entry, entriesIn } from './tree.ts';

/** Tiles per transaction: calls wait for it where the store has a single writer. */
const BATCH_TILES = 2;

/** Rows of a kind that finished before `before` are expired. */
export type Aged = { organisationId: string; kind: RetainedKind; before: Instant; now: Instant };

/**
 * Returns the ids of the rows of a kind among these entries that finished before `before`. A row that differs from its recorded hash, or finished
 * later than its tile says, is kept, and appears in every export: whoever altered it, or the tile, may want it deleted. `left`: number of those.
 */
export async function oldRowsOf(
  db: Db,
  { organisationId, kind, now }: Omit<Aged, 'before'>,
  places: readonly Place[],
  before: Instant,
): Promise<{ old: Set<string>; left: number }> {
  const hashes = new Map(places.map(({ id, hash }) => [id, hash.toString('hex')]));
  const rows = await findRowsOf(db, organisationId, [...hashes.keys()], kind);
  const isOld = ({ finished_at: end }: AuditRow) => end !== null && (end < before || end > now);
  const old = rows.filter((row) => isOld(row) && rowHash(row) === hashes.get(row.id));
  return { old: new Set(old.map(({ id }) => id)), left: rows.length - old.length };
}

export type Place = Entry & { index: number };

/** Returns the next entries of the log from an index on. */
export async function placesFrom(db: Db, organisationId: string, from: number): Promise<Place[]> {
  return placesIn(await tilesFrom(db, organisationId, from), from);
}

/** Returns the next entries up to the first tile with a row that finished at `before` or later. */
export async function oldPlacesFrom(db: Db, { organisationId, before, now }: Aged, from: number): Promise<Place[]> {
  const old: LogEntriesTable[] = [];
  for (const tile of await tilesFrom(db, organisationId, from)) {
    // The tile's time was set by a clock that was ahead: the time of the next tile is used, whose rows finished later.
    const isKnown = tile.last_at <= now;
    const end = isKnown ? tile.last_at : await endOfNextTile(db, organisationId, tile.tile_index, now);
    if (end === undefined || end >= before) break;
    old.push(tile);
  }
  return placesIn(old, from);
}

const tilesFrom = (db: Db, organisationId: string, from: number): Promise<LogEntriesTable[]> =>
  listEntriesSince(db, organisationId, { since: 0, from: Math.floor(from / TILE_WIDTH), limit: BATCH_TILES });

const placesIn = (tiles: readonly LogEntriesTable[], from: number): Place[] =>
  tiles
    .flatMap((tile) => entriesIn(tile).map((entry, at) => ({ ...entry, index: tile.tile_index * TILE_WIDTH + at })))
    .filter(({ index }) => index >= from);

/** Encodes which rows of each tile: base64 of 32 bytes, where row `i` of the tile is bit `i % 8`, from the lowest, of byte `i / 8`. */
export function bitsByTile(indexes: readonly number[]): Record<string, string> {
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
